import { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient, type PayrollClient, take } from 'confidential-payroll-sdk'
import { openProver } from 'confidential-payroll-sdk/prover'
import {
  buildMerge,
  buildRegister,
  fetchDeployment,
  keypairSigner,
  matchPayees,
  type NoteStore,
  openDeployment,
  openNotes,
  openWallet,
  type RunRequest,
  readOwnPayments,
  runBatch,
  signIn,
  syncBalance,
} from 'confidential-payroll-sdk/wallet'

// Attacks on an employer's client that has nothing but the package: an attacker changes what the service or the RPC returns.
// Prints one JSON object: what came of each.

const [service = '', network = ''] = process.argv.slice(2)
const document = await fetchDeployment(network)
const prover = await openProver()
const deployment = openDeployment(document, prover)
const outcomes: Record<string, unknown> = {}

type Body = Record<string, unknown>
type Change = (body: Body) => Body
/** The responses that the attacker changes: those to requests whose method and path match. */
type Lies = [RegExp, Change][]

async function attempt(name: string, action: () => Promise<unknown>): Promise<void> {
  outcomes[name] = await action().catch((error: { code?: string }) => error.code ?? String(error))
}

function clientOf(session: () => string, lies: Lies = [], origin = service): PayrollClient {
  return createPayrollClient({
    baseUrl: `${origin}/api`,
    session,
    fetch: async (request) => {
      const name = `${request.method} ${new URL(request.url).pathname}`
      const changes = lies.filter(([pattern]) => pattern.test(name))
      const response = await fetch(request)
      if (changes.length === 0) return response
      const body = changes.reduce((given, [, change]) => change(given), (await response.json()) as Body)
      return Response.json(body, { headers: { link: response.headers.get('link') ?? '' } })
    },
  })
}

async function enrol(signer = keypairSigner(Keypair.random())) {
  await deployment.rpc.fundAddress(signer.address)
  const session = await signIn(
    clientOf(() => ''),
    signer,
  )
  const client = clientOf(() => session)
  const holder = await openWallet(signer, deployment.token)
  const { signedXdr } = await buildRegister(deployment, holder, { auditorId: document.auditor.id })
  await take(client.POST('/calls', { body: { signedXDR: signedXdr } }))
  return { holder, client, session }
}

const { holder: employer, client, session } = await enrol()
const { holder: ada } = await enrol()
const thief = Keypair.random().publicKey()

await take(client.POST('/funding/faucet'))
const merge = await buildMerge(deployment, employer.signer)
await take(client.POST('/calls', { body: { signedXDR: merge.signedXdr } }))
const row = { name: 'Ada', email: 'ada@example.com', address: ada.address }
await take(client.POST('/contractors', { body: row }))
const { id: batch } = await take(client.POST('/batches', { body: { name: 'March' } }))

function openStore(lines: string[] = []): NoteStore {
  return { read: () => lines, append: (added) => void lines.push(...added) }
}
const notes = openNotes(employer, openStore())
const AMOUNT = 3_0000000n
const byAddress = [{ contractor: ada.address, amount: AMOUNT }]

/** Runs the batch while the service lies; resolves to what was paid. */
async function run(lies: Lies = [], changes: Partial<RunRequest> = {}): Promise<string> {
  const liar = clientOf(() => session, lies)
  const payees = changes.payees ?? (await matchPayees(client, byAddress, notes))
  const { paid, payouts } = await runBatch({
    ...{ deployment, client: liar, holder: employer, relay: document.relay, batch, payees, notes },
    ...{ channels: 1, revokes: true, seenMs: 2_000, say: () => undefined, ...changes },
  })
  return `${paid} of ${payouts}`
}

const redirect: Change = (body) => ({
  ...body,
  contractors: (body.contractors as Body[]).map((one) => ({ ...one, address: thief })),
})
const redirected = clientOf(() => session, [[/^GET .*\/contractors$/, redirect]])
const spentBefore = (await syncBalance(deployment, employer)).spendable.value

await attempt('a challenge of another host', () => {
  const other = service.replace('localhost', '127.0.0.1')
  return signIn(
    clientOf(() => '', [], other),
    employer.signer,
  )
})
await attempt('another address for a payee', () =>
  matchPayees(redirected, [{ contractor: 'ada@example.com', amount: AMOUNT, address: ada.address }], notes),
)
await attempt('an address that only the service has', () =>
  matchPayees(redirected, [{ contractor: 'ada@example.com', amount: AMOUNT }], notes),
)
await attempt('another key of the relay', async () => {
  const { kty, crv, x, y } = await crypto.subtle.exportKey(
    'jwk',
    (await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits'])).publicKey,
  )
  return await run([[/^GET .*\/relay$/, (body) => ({ ...body, publicKey: { kty, crv, x, y } })]])
})
await attempt('another channel of the relay', () =>
  run([[/^GET .*\/relay$/, (body) => ({ ...body, channels: [{ address: thief, available: true }] })]]),
)
await attempt('a delegation for ever', () =>
  run([[/^GET .*\/relay$/, (body) => ({ ...body, ledgersPerPayout: 1_000_000 })]]),
)
await attempt('a payment that was never made', () =>
  run([
    [/^GET .*\/batches\/[\w-]+\/status$/, (body) => ({ ...body, status: 'completed' })],
    [/^GET .*\/batches\/[\w-]+$/, (body) => claim(body, 'paid')],
  ]),
)
await attempt('a fee that nobody would pay', async () => {
  const rpc = Object.assign(Object.create(deployment.rpc) as typeof deployment.rpc, {
    simulateTransaction: async (...given: Parameters<typeof deployment.rpc.simulateTransaction>) => {
      const simulation = await deployment.rpc.simulateTransaction(...given)
      return { ...simulation, minResourceFee: '90000000' }
    },
  })
  return await buildMerge({ ...deployment, rpc }, employer.signer)
})
outcomes['spent by all of these'] = String(spentBefore - (await syncBalance(deployment, employer)).spendable.value)
outcomes['paid by all of these'] = (await readOwnPayments(deployment, employer)).payments.length

/** Every payout of a batch as having another status, and other ids if so. */
function claim(body: Body, status: string, ids?: () => string): Body {
  const payouts = (body.payouts as Body[]).map(({ txHash: _, ...one }) => ({
    ...one,
    status,
    ...(ids && { id: ids() }),
  }))
  return { ...body, status: status === 'paid' ? 'completed' : 'ready', payouts }
}
const unpaid: Lies = [
  [/^GET .*\/batches\/[\w-]+$/, (body) => claim(body, 'ready')],
  [/^DELETE .*\/payouts\//, (body) => body],
]
const replaced: Lies = [[/^GET .*\/batches\/[\w-]+$/, (body) => claim(body, 'ready', () => crypto.randomUUID())]]
const forgotten = openNotes(employer, openStore())

await attempt('no attack', () => run())
await attempt('a payment that the service has forgotten', () => run(unpaid))
await attempt('the same, without notes', () => run(unpaid, { notes: forgotten }))
await attempt('payouts in place of those that were paid', () => run(replaced))
await attempt('the same without notes', () => run(replaced, { notes: openNotes(employer, openStore()) }))
outcomes['payments in the end'] = (await readOwnPayments(deployment, employer)).payments.length
outcomes['received in the end'] = String((await syncBalance(deployment, ada)).receiving.value)

await prover.destroy()
console.log(JSON.stringify(outcomes))
