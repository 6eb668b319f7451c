import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { Keypair } from '@stellar/stellar-sdk'
import { endow, openTestNetwork, registerHolder, type TestNetwork } from '#lib/cli/client/participants.ts'
import { connectWallet, sponsorTransfer } from '#lib/cli/client/wallet-session.ts'
import { runPayroll } from '#lib/cli/demo/payroll.ts'
import { acceptInvite, importAndInvite, prepareBatch } from '#lib/cli/demo/payroll-steps.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { take } from '#lib/sdk/payroll-client.ts'
import { runBatch } from '#lib/sdk/run.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { parseUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'

/** The wallets of the story. The test of a later version signs in with them again. */
export const wallet = (name: string): Keypair =>
  Keypair.fromRawEd25519Seed(createHash('sha256').update(`release data: ${name}`).digest())

/** What is unfinished in the data, for the test to look at. */
export interface Unfinished {
  /** a batch that the relay pays, of four payouts */
  run: string
  /** a batch whose only payout has an open transfer of its employer */
  batch: string
  payout: string
  /** a job of the relay with two lines, which no relay can pay in time */
  job: string
}

export type FirstPart = Omit<Unfinished, 'job'>

interface Place {
  base: string
  deploymentUrl: string
}

const PAYEES = ['Ann', 'Ben', 'Cho', 'Dee']

async function openWallet(network: TestNetwork, base: string, name: string): Promise<Holder> {
  await requestFriendbot(network.friendbotUrl, wallet(name).publicKey())
  const client = await connectWallet(base, wallet(name))
  return await registerHolder(network, wallet(name), (signedXdr) => sponsorCall(client, signedXdr))
}

/** Pays: a payroll, a relay's job and a run that end, and a run that is interrupted after its first payment. */
export async function tellFirstPart({ base, deploymentUrl }: Place): Promise<FirstPart> {
  const { failures, skipped } = await runPayroll({ base, deploymentUrl, prover }, () => undefined)
  if (failures.length + skipped.length > 0) throw new Error([...failures, ...skipped].join('\n'))
  const network = await openTestNetwork(deploymentUrl)
  const [employer, ...payees] = await Promise.all(
    ['employer', ...PAYEES].map((name) => openWallet(network, base, name)),
  )
  if (!employer) throw new Error('no employer')
  const client = await connectWallet(base, wallet('employer'))
  await endow(network, devnetKeys(network.passphrase).issuer, employer, parseUnits('1000'), (signedXdr) =>
    sponsorCall(client, signedXdr),
  )
  await take(client.PATCH('/me', { body: { orgName: 'Upgraded Ltd' } }))
  const invited = await importAndInvite(
    client,
    PAYEES.map((name) => ({ name, pay: '10' })),
  )
  for (const [index, { token }] of invited.entries()) await acceptInvite(base, wallet(PAYEES[index] ?? ''), token)
  // A transfer that no rule allows: the reason is counted.
  await take(client.POST('/transfer', { body: { signedXDR: await ownTransfer(network, employer) } })).catch(
    () => undefined,
  )
  const { id: batch, payoutIds } = await prepareBatch(client, 'Paid by the client', [
    { contractorId: invited[0]?.id ?? '', encryptedAmount: 'sealed' },
  ])
  // The archive reads every ledger a second time, 60 ledgers later.
  await setTimeout(35_000)
  const { id: run } = await take(client.POST('/batches', { body: { name: 'Paid by the relay' } }))
  const enough = new AbortController()
  const lines: string[] = []
  const running = runBatch({
    ...{ deployment: network, client, holder: employer, relay: network.relay, batch: run, channels: 1, revokes: false },
    payees: payees.map(({ address }, index) => {
      return { contractor: invited[index]?.id ?? '', address, amount: parseUnits('10') }
    }),
    notes: openNotes(employer, { read: () => lines, append: (added) => void lines.push(...added) }),
    assumesUnpaid: true,
    say: () => undefined,
    progress: ({ step, done }) => {
      if (step === 'paying' && done > 0) enough.abort()
    },
    signal: enough.signal,
  })
  await running.catch((error: unknown) => {
    if (!enough.signal.aborted) throw error
  })
  // The process ends while a payment of the run is on its way.
  const read = () => take(client.GET('/batches/{id}', { params: { path: { id: run } } }))
  while (!(await read()).payouts.some(({ status }) => status === 'pending')) await setTimeout(20)
  return { run, batch, payout: payoutIds[0] ?? '' }
}

async function ownTransfer(network: TestNetwork, employer: Holder): Promise<string> {
  const { spendable } = await syncBalance(network, employer)
  const transfer = { to: employer.address, amount: 1n, opening: spendable }
  return (await buildTransfer({ ...network, passphrase: 'Another Network' }, employer, transfer)).signedXdr
}

/** Leaves open a client's transfer, on a ledger that does not close meanwhile, and a job. */
export async function tellSecondPart(
  { base, deploymentUrl }: Place,
  { batch, payout }: FirstPart,
): Promise<Pick<Unfinished, 'job'>> {
  const network = await openTestNetwork(deploymentUrl)
  const client = await connectWallet(base, wallet('employer'))
  const employer = openHolder(wallet('employer'), network.token)
  const { spendable } = await syncBalance(network, employer)
  const transfer = { to: wallet('Ann').publicKey(), amount: parseUnits('10'), opening: spendable }
  const { signedXdr } = await buildTransfer(network, employer, transfer)
  // No response comes before the ledger closes.
  sponsorTransfer(client, signedXdr, payout).catch(() => undefined)
  const params = { path: { id: batch } }
  while ((await take(client.GET('/batches/{id}/status', { params }))).status !== 'started') await setTimeout(100)
  const another = await connectWallet(base, wallet('Dee'))
  const { jobId } = await take(another.POST('/batch', { body: { amounts: [1, 2] } }))
  return { job: jobId }
}
