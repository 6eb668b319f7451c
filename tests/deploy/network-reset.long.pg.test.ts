import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Keypair } from '@stellar/stellar-sdk'
import { expect, onTestFinished, test } from 'vitest'
import { FOREIGN } from '#lib/archive/identity.ts'
import { endow, enrol, openTestNetwork, registerHolder, type TestNetwork } from '#lib/cli/client/participants.ts'
import { connectWallet, sponsorTransfer } from '#lib/cli/client/wallet-session.ts'
import { decryptedBalance, payOne } from '#lib/cli/demo/payment.ts'
import { prepareBatch, sealAmount } from '#lib/cli/demo/payroll-steps.ts'
import { runRelayBatch } from '#lib/cli/demo/relay-batch.ts'
import { openStore } from '#lib/db/connection.ts'
import { type Devnet, type DevnetOptions, startDevnet } from '#lib/devnet/devnet.ts'
import { type PayrollClient, take } from '#lib/sdk/payroll-client.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { foundProblems } from '#lib/server/readiness.ts'
import { startRelay } from '#lib/server/relay.ts'
import { readVariables } from '#lib/setup/env-file.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { SHORT_TIMES } from '../relay/short-times.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { cloneDatabase, emptyDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { openTestService } from '../support/test-service.ts'

// The steps of docs/operate.md, "A reset of the network".

const run = promisify(execFile)
const PASSPHRASE = 'Standalone Network ; February 2017'

/** What an operator copies from the old environment. */
const OWN = { TRANSFER_WAIT: '2', RELAY_PORT: '0', OPERATOR_PASSWORD: 'correct horse battery' }

/** `npm run setup` with the deployment document in a file. Resolves to the variables that it writes. */
async function setUp(directory: string, devnet: Devnet, name: string): Promise<Record<string, string>> {
  const [document, file] = [join(directory, `${name}.json`), join(directory, `${name}.env`)]
  writeFileSync(document, JSON.stringify(devnet.deployment))
  const env = { ...CHILD_VARIABLES, DEVNET_PROOFS: 'stand-in', FAUCET_SEED: devnet.issuerSecret }
  const args = ['lib/cli/setup.ts', '--deployment', document, '--channels', '1', '--env', file]
  await run(process.execPath, args, { env: env as unknown as NodeJS.ProcessEnv })
  return readVariables(readFileSync(file, 'utf8'))
}

/** Runs a service and a relay in this process. */
async function operate(variables: Record<string, string>, database: TestDatabase) {
  const own = { ...variables, ...OWN, DATABASE_URL: database.url }
  const service = await openTestService({ http: true, choresEveryMs: 2_000, variables: own, database })
  const relay = await startRelay(service.running, { times: { ...SHORT_TIMES, validity: VALID_SECONDS } })
  const ready = async () => await service.ask('GET', '/ready')
  return {
    ...service,
    ready,
    stop: async () => {
      await relay.close()
      await service.close()
    },
  }
}

/** The shell blocks of the guide: how contractors are saved, and how they are imported again. */
function readBlocks(): string[] {
  const [, section = ''] = readFileSync('docs/operate.md', 'utf8').split(/^### A reset of the network\n/m)
  const [text = ''] = section.split(/^### /m)
  return Array.from(text.matchAll(/^```sh\n([\s\S]*?)```/gm), ([, block = '']) => block)
}

interface Parties {
  client: PayrollClient
  issuer: Keypair
  employer: Holder
  payee: Holder
}

/** Pays a contractor by a transfer and by a job. Resolves to what is left of the employer's deposit. */
async function payTwice(network: TestNetwork, { client, issuer, employer, payee }: Parties): Promise<Opening> {
  const opening = await endow(network, issuer, employer, 100_0000000n, (xdr) => sponsorCall(client, xdr))
  const { payoutIds } = await instruct(client, employer, payee)
  const sent = { to: payee, sent: 10_0000000n }
  const { next } = await payOne(network, employer, opening, sent, (xdr) => sponsorTransfer(client, xdr, payoutIds[0]))
  expect(await runRelayBatch(client, [1_0000000n], () => undefined)).toBe('completed')
  expect(await decryptedBalance(network, payee)).toBe(11_0000000n)
  return next
}

/** A locked batch with one payout. */
async function instruct(client: PayrollClient, employer: Holder, { address }: Holder) {
  const { contractors } = await take(client.GET('/contractors'))
  const contractorId = contractors.find((one) => one.address === address)?.id ?? ''
  return await prepareBatch(client, 'May', [{ contractorId, encryptedAmount: sealAmount(employer.keys.vk, '10') }])
}

/** The time bounds of what is open when the network is reset: longer than the validator's slack of ten seconds. */
const VALID_SECONDS = 15

/** The response after two seconds. On a busy machine they may pass before the commit's response has come. */
const UNDECIDED = { status: 500, body: { code: expect.stringMatching(/^(transfer-open|unavailable)$/) } }

test('a service pays and ends nothing after a reset of its network, and the guide’s steps bring it back', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'payroll-reset-test-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const [save, restore] = readBlocks()
  const perform = async (block: string | undefined, session: string, base: string) => {
    const env = { ...CHILD_VARIABLES, SESSION: session, PUBLIC_URL: base } as unknown as NodeJS.ProcessEnv
    return (await run('bash', ['-euo', 'pipefail', '-c', block ?? 'false'], { cwd: directory, env })).stdout
  }
  const given: DevnetOptions = { directory: null, port: await freePort(), closeMs: 100, passphrase: PASSPHRASE }
  let isLossy = false
  const first = await startDevnet({ ...given, loses: () => (isLossy ? 'announcement' : undefined) })
  onTestFinished(first.close)
  const oldDatabase = await cloneDatabase()
  onTestFinished(oldDatabase.drop)
  const before = await operate(await setUp(directory, first, 'old'), oldDatabase)
  onTestFinished(before.stop)

  const network = await openTestNetwork(`${first.url}/deployment.json`)
  const [employer, payee] = await Promise.all([enrol(network), enrol(network)])
  const client = await connectWallet(before.base, employer.signer)
  const rows = [{ name: 'Ada', email: 'ada@example.com', address: payee.address, amount: 10.5 }, { name: 'Bob' }]
  expect((await take(client.POST('/contractors/bulk', { body: { rows } }))).errors).toEqual([])
  const issuer = Keypair.fromSecret(first.issuerSecret)
  const opening = await payTwice(network, { client, issuer, employer, payee })
  const session = await before.wallet(employer.address)
  await perform(save, session, before.base)
  await expect.poll(async () => (await before.ready()).body.archive).toHaveProperty('ingestedThrough')

  // A transfer and a job's payment that the network has not applied when it is reset.
  const { id: batch, payoutIds } = await instruct(client, employer, payee)
  const transfer = { to: payee.address, amount: 10_0000000n, opening }
  const { signedXdr: signedXDR } = await buildTransfer(network, employer, transfer, { seconds: VALID_SECONDS })
  isLossy = true
  const body = { signedXDR, payoutId: payoutIds[0] }
  const pending = before.post({ session }, body)
  const { jobId } = await take(client.POST('/batch', { body: { amounts: [1_0000000] } }))
  const readOpen = () => before.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.status, 'open') })
  await expect.poll(async () => (await readOpen()).length).toBe(2)
  const [open, signedAt] = [await readOpen(), performance.now()]
  const { sequence } = await network.rpc.getLatestLedger()
  expect(await pending).toMatchObject(UNDECIDED)
  await first.close()

  // Testnet keeps its passphrase. Another deployer has another token.
  const second = await startDevnet({ ...given, keys: { issuer: Keypair.random() } })
  onTestFinished(second.close)
  // This process must notice first that the old ledger has closed its connections.
  await setTimeout(100)
  const renewed = await openTestNetwork(`${second.url}/deployment.json`)
  expect(renewed.token).not.toBe(network.token)
  expect((await renewed.rpc.getLatestLedger()).sequence).toBeLessThan(sequence)
  const unready = { ok: false, ledger: { ok: false, problem: FOREIGN } }
  await expect.poll(async () => await before.ready()).toMatchObject({ status: 503, body: unready })
  expect(foundProblems(before.running)).toContainEqual(expect.objectContaining({ part: 'ledger', problem: FOREIGN }))
  const contractors = await take(client.GET('/contractors'))
  expect(JSON.parse(readFileSync(join(directory, 'contractors.json'), 'utf8'))).toEqual(contractors)
  const stranger = await connectWallet(before.base, payee.signer)
  const later = await take(stranger.POST('/batch', { body: { amounts: [5] } }))
  expect(await before.post({ session }, body)).toMatchObject(UNDECIDED)
  // By the new ledger, too, the time bounds of what is open have passed.
  await setTimeout(Math.max(0, (VALID_SECONDS + 3) * 1000 - (performance.now() - signedAt)))
  expect(new Set((await readOpen()).map(({ id }) => id))).toEqual(new Set(open.map(({ id }) => id)))
  const ofBatch = await take(client.GET('/batches/{id}', { params: { path: { id: batch } } }))
  expect(ofBatch.payouts).toMatchObject([{ id: payoutIds[0], status: 'pending' }])
  const readJob = (of: PayrollClient, id: string) => take(of.GET('/batch/{jobId}', { params: { path: { jobId: id } } }))
  const waiting = { status: 'running', results: [] }
  expect([await readJob(client, jobId), await readJob(stranger, later.jobId)]).toMatchObject([waiting, waiting])

  // Steps 1 to 5 of the guide.
  await before.stop()
  const empty = await emptyDatabase()
  onTestFinished(empty.drop)
  const store = openStore({ url: empty.url })
  onTestFinished(store.close)
  const after = await operate(await setUp(directory, second, 'new'), { ...empty, store, shared: undefined })
  onTestFinished(after.stop)
  await expect.poll(async () => (await after.ready()).status).toBe(200)
  expect((await after.ask('GET', '/me', { session })).status).toBe(401)

  // Step 6: the employer signs in, which takes no account, and imports.
  const again = await connectWallet(after.base, employer.signer)
  const imported = JSON.parse(await perform(restore, await after.wallet(employer.address), after.base))
  expect(imported).toMatchObject({ imported: [{ status: 'invited' }, { status: 'invited' }], errors: [] })

  // Step 7.
  const register = async ({ signer }: Holder) => {
    await requestFriendbot(renewed.friendbotUrl, signer.publicKey())
    const own = await connectWallet(after.base, signer)
    return await registerHolder(renewed, signer, (xdr) => sponsorCall(own, xdr))
  }
  const [payer, paid] = [await register(employer), await register(payee)]
  const { address } = payee
  const rate = { amount: '10.5', currency: 'USDC' }
  const ada = expect.objectContaining({ name: 'Ada', email: 'ada@example.com', address, status: 'ready', rate })
  await expect.poll(async () => (await take(again.GET('/contractors'))).contractors).toContainEqual(ada)
  const newIssuer = Keypair.fromSecret(second.issuerSecret)
  await payTwice(renewed, { client: again, issuer: newIssuer, employer: payer, payee: paid })
})
