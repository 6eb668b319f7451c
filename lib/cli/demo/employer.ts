import { text } from 'node:stream/consumers'
import { Keypair } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { environment } from '#lib/config/environment.ts'
import { loadProver, proverSettings } from '#lib/prover/node/loading.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { take } from '#lib/sdk/payroll-client.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { parseUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDelegation } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { sealPayout } from '#lib/wallet/seal.ts'
import { requireTrusted } from '#lib/wallet/trusted-relay.ts'
import { openTestNetwork } from '../client/participants.ts'
import { signRun } from '../client/run-signature.ts'
import { connectWallet } from '../client/wallet-session.ts'
import { print } from '../process/output.ts'

// The employer's process of the demo: it delegates, signs and starts one run, and ends. It reads its task from standard
// input, because the task has a secret key.

const TASK = z.object({
  base: z.string(),
  deploymentUrl: z.string(),
  secret: z.string(),
  batch: z.string(),
  escrow: z.string(),
  payments: z.array(z.object({ contractorId: z.string(), address: z.string(), amount: z.string() })),
})

const { base, deploymentUrl, secret, batch, escrow, payments } = TASK.parse(JSON.parse(await text(process.stdin)))
const say = (line: string) => print(`  the employer: ${line}`)
const prover = await loadProver(proverSettings(environment()), say)
const network = await openTestNetwork(deploymentUrl, announceProofs(prover, 1, say))
const signer = Keypair.fromSecret(secret)
const client = await connectWallet(base, signer)

// The key that reads the amounts and the channel that gets the escrow must be those of the deployment document.
const relay = await take(client.GET('/relay'))
const { publicKey } = relay
const trusted = await requireTrusted(network.relay, { publicKey, channels: [] })
const channel = relay.channels.find(
  ({ address, available }) => available && trusted.channels.includes(address),
)?.address
if (channel === undefined) throw new Error('no channel of the deployment document can take a run now')

const holder = openHolder(signer, network.token)
const lines: string[] = []
const notes = openNotes(holder, { read: () => lines, append: (added) => void lines.push(...added) })
const instructions = await Promise.all(
  payments.map(async ({ contractorId: contractor, amount }) => {
    const sealed = await sealPayout(relay.publicKey, { batch, contractor, spender: channel }, parseUnits(amount))
    notes.addSeals([{ payment: { batch, contractor, channel, amount: parseUnits(amount) }, encryptedAmount: sealed }])
    return { contractorId: contractor, encryptedAmount: sealed }
  }),
)
const params = { path: { id: batch } }
const { errors } = await take(client.POST('/batches/{id}/instructions', { params, body: { instructions } }))
if (errors.length > 0) throw new Error(`some contractors cannot be paid: ${JSON.stringify(errors)}`)
await take(client.POST('/batches/{id}/ready', { params }))

const { spendable: opening } = await syncBalance(network, holder)
const ledgers = 10 * relay.marginLedgers + 2 * relay.ledgersPerPayout * payments.length
const delegation = {
  spender: channel,
  amount: parseUnits(escrow),
  liveUntilLedger: relay.latestLedger + ledgers,
  opening,
}
await sponsorCall(client, (await buildDelegation(network, holder, delegation)).signedXdr)
say(`has delegated ${escrow} test USDC to ${channel} until ledger ${delegation.liveUntilLedger}`)

const payees = payments.map(({ contractorId: contractor, address, amount }) => {
  return { contractor, address, amount: parseUnits(amount) }
})
// The payments of the first batch, which this process has no notes of, were for that batch.
const request = { deployment: network, client, holder, relay: trusted, batch, notes, assumesUnpaid: true, say }
const body = JSON.parse(await signRun(request, payees))
await take(client.POST('/batches/{id}/run', { params, body }))
say('has signed and started the run, and its process ends')
// Read by the parent process, which revokes the rest.
print(JSON.stringify({ channel }))
await prover.destroy?.()
