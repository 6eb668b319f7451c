import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { GET as getHealth } from '#app/api/health/route.ts'
import { GET } from '#app/api/metrics/route.ts'
import { POST as postTransfer } from '#app/api/transfer/route.ts'
import { SERVICE_OPERATIONS } from '#lib/api/service.ts'
import { insertRows, itemRow, jobRow, transferRow } from '#lib/cli/seed/rows.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { startService } from '#lib/server/start.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { prepareTransfer } from '../support/transfers.ts'
import { readExposition } from './exposition.ts'

const TOKEN = 'a token for metrics'
const FAUCET = Keypair.random()

let service: TestService<'embedded'>
beforeAll(async () => {
  service = await openTestService({
    ledger: 'embedded',
    variables: { METRICS_TOKEN: TOKEN, FAUCET_SEED: FAUCET.secret() },
  })
})
afterAll(() => service?.close())

async function ask(authorization?: string) {
  const headers = new Headers(authorization === undefined ? {} : { authorization })
  const response = await GET(new Request('http://localhost:3000/api/metrics', { headers }), undefined)
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
}

async function read() {
  const { status, type, text } = await ask(`Bearer ${TOKEN}`)
  expect([status, type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  return readExposition(text)
}

test.each([
  [undefined, 'missing bearer token'],
  ['Basic dXNlcjpwdw==', 'missing bearer token'],
  ['Bearer another token', 'invalid metrics token'],
  [`Bearer ${TOKEN} `.repeat(2), 'invalid metrics token'],
])('responds 401 to %s', async (authorization, error) => {
  const { status, text } = await ask(authorization)
  expect([status, JSON.parse(text)]).toMatchObject([401, { error }])
})

test('serves no metrics without METRICS_TOKEN', async () => {
  const other = await startService(
    readEnvironment({ ...service.variables, METRICS_TOKEN: '' }),
    service.database.shared,
  )
  provideService(Promise.resolve(other))
  const { status, text } = await ask(`Bearer ${TOKEN}`)
  provideService(Promise.resolve(service.running))
  await other.close()
  expect([status, JSON.parse(text)]).toEqual([
    501,
    { error: 'metrics are not configured', code: 'metrics-not-configured' },
  ])
})

test('exports transfers, refusals, quota and float from the database', async () => {
  const payee = await service.employ()
  const paid = await prepareTransfer(service, payee.address)
  expect((await paid.post()).status).toBe(200)
  const refused = await prepareTransfer(service, payee.address, { seconds: 1000 })
  expect((await refused.post()).status).toBe(422)
  // A faucet deposit does not count as a sponsored transfer.
  const db = await service.database.store.database()
  const deposit = {
    account: FAUCET.publicKey(),
    recipient: payee.address,
    bid: 0n,
    kind: 'deposit',
    status: 'succeeded',
  } as const
  await insertRows(db, { transfers: [transferRow(deposit)] })
  const row = await service.findTransfer(paid.hash)
  const sponsor = service.ledger.sponsor.publicKey()

  const { types, samples } = await read()
  expect(samples.get('payroll_transfers_total{status="succeeded"}')).toBe(1)
  expect(samples.get('payroll_refusals_total{reason="expires-too-late"}')).toBe(1)
  expect(types.get('payroll_settlement_seconds')).toBe('histogram')
  expect(samples.get('payroll_settlement_seconds_count')).toBe(1)
  expect(samples.get('payroll_settlement_seconds_bucket{le="+Inf"}')).toBe(1)
  const seconds = (Number(row?.settledAt) - Number(row?.createdAt)) / 1000
  expect(samples.get('payroll_settlement_seconds_sum')).toBeCloseTo(seconds, 2)
  expect(samples.get('payroll_sponsor_day_stroops{state="used"}')).toBe(Number(row?.feeCharged))
  expect(samples.get('payroll_sponsor_day_stroops{state="held"}')).toBe(0)
  expect(samples.get('payroll_sponsor_day_transfers')).toBe(1)
  expect(samples.get(`payroll_sponsor_held_stroops{sponsor="${sponsor}"}`)).toBe(0)
  expect(samples.get('payroll_sponsor_day_limit_stroops')).toBe(10_000_000_000)
  const balance = await service.running.sponsor?.readBalance()
  expect(samples.get(`payroll_sponsor_balance_stroops{sponsor="${sponsor}"}`)).toBe(Number(balance))
})

test('exports the unfinished and failed relay jobs and transfers, by state', async () => {
  const [job, other] = [jobRow({ status: 'completed' }), jobRow({ status: 'failed' })]
  const outcomes = ['paid', 'paid', 'failed', 'canceled', null, null, null] as const
  const items = outcomes.map((outcome, position) => itemRow({ job: job.id, position, outcome }))
  const leased = { channel: 'GLEASED', leasedUntil: new Date('2100-01-01') }
  const sent = transferRow({ account: 'GSENT', lineJob: job.id, linePosition: 4, createdAt: new Date() })
  const lines = items.map((line) => (line.position === 5 ? { ...line, ...leased } : line))
  await insertRows(service.db, { jobs: [job, other], items: lines, transfers: [sent] })
  const { samples } = await read()
  expect(samples.has('payroll_jobs{state="completed"}')).toBe(false)
  expect(samples.get('payroll_jobs{state="failed"}')).toBe(1)
  for (const state of ['waiting', 'preparing', 'sent', 'failed']) {
    expect(samples.get(`payroll_job_lines{state="${state}"}`)).toBe(1)
  }
  for (const state of ['paid', 'canceled']) expect(samples.has(`payroll_job_lines{state="${state}"}`)).toBe(false)
})

test('exports requests by route and status, and the RPC calls of this process', async () => {
  const before = await read()
  await getHealth(new Request('http://localhost:3000/api/health'), { params: Promise.resolve({}) })
  await postTransfer(new Request('http://localhost:3000/api/transfer', { method: 'POST' }), undefined)
  await service.running.sponsor?.readBalance()
  const after = await read()
  const grown = (name: string) => (after.samples.get(name) ?? 0) - (before.samples.get(name) ?? 0)
  expect(grown('payroll_http_requests_total{method="GET",route="/health",status="200"}')).toBe(1)
  expect(grown('payroll_http_request_seconds_count{method="GET",route="/health"}')).toBe(1)
  expect(grown('payroll_http_requests_total{method="POST",route="/transfer",status="401"}')).toBe(1)
  // The sponsor's balance is read twice: by this test and by the second scrape.
  expect(grown('payroll_rpc_calls_total{method="getLedgerEntries"}')).toBe(2)
  expect(grown('payroll_rpc_errors_total{method="getLedgerEntries"}')).toBe(0)
  expect(after.samples.get('payroll_rpc_calls_total{method="sendTransaction"}')).toBeGreaterThan(0)
})

test('matches the example in the reference', async () => {
  const example = String(SERVICE_OPERATIONS.find(({ id }) => id === 'getMetrics')?.response?.example)
  const { text } = await ask(`Bearer ${TOKEN}`)
  const described = example.split('\n').filter((line) => line.startsWith('#'))
  expect(described.length).toBeGreaterThan(0)
  expect(text.split('\n')).toEqual(expect.arrayContaining(described))
  const names = [...readExposition(example).samples.keys()]
  expect(names.length).toBeGreaterThan(0)
  expect([...readExposition(text).samples.keys()]).toEqual(expect.arrayContaining(names))
})

test.each<[string, Fault]>([
  ['is unreachable', { drop: true, delivered: false }],
  ['responds with a JSON-RPC error', { error: { code: -32603, message: 'internal error' } }],
])('counts the failures of an RPC that %s, and still exports everything else', async (_, fault) => {
  const before = await read()
  service.ledger.proxy.rule(() => fault)
  const during = await read()
  service.ledger.proxy.rule(null)
  expect(during.samples.get('payroll_up{part="ledger"}')).toBe(0)
  expect(during.samples.get('payroll_up{part="database"}')).toBe(1)
  expect(during.samples.get('payroll_transfers_total{status="succeeded"}')).toBe(1)
  const errors = 'payroll_rpc_errors_total{method="getLedgerEntries"}'
  expect((during.samples.get(errors) ?? 0) - (before.samples.get(errors) ?? 0)).toBe(1)
})

test('omits only the database’s families while the database is unreachable', async () => {
  const sponsorAddress = Keypair.fromSecret(service.ledger.sponsor.secret()).publicKey()
  const other = await startService(
    readEnvironment({ ...service.variables, DATABASE_URL: 'postgres://postgres:postgres@127.0.0.1:1/nothing' }),
  )
  provideService(Promise.resolve(other))
  const { samples } = await read()
  provideService(Promise.resolve(service.running))
  await other.close()
  expect(samples.get('payroll_up{part="database"}')).toBe(0)
  expect(samples.get('payroll_up{part="ledger"}')).toBe(1)
  expect(samples.has('payroll_transfers_total{status="succeeded"}')).toBe(false)
  expect(samples.get(`payroll_sponsor_balance_stroops{sponsor="${sponsorAddress}"}`)).toBeGreaterThan(0)
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1_000_000)
})
