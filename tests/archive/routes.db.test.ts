import type { ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { archiveFinalRanges, archiveRanges, archiveStreams } from '#drizzle/schema/archive.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { withResponse } from '#lib/turns/response.ts'
import { captureLog } from '../support/console.ts'
import { accountAt } from '../support/event-rpc.ts'
import { openTestService, type SignedInPayer, type TestService } from '../support/test-service.ts'

let service: TestService<'embedded'>
let payer: SignedInPayer
let token: string

beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded' })
  payer = await service.employ()
  token = String(service.running.settings.token)
  await ingestNow()
})
afterAll(() => service.close())
afterEach(() => void vi.restoreAllMocks())

/** Ingests up to the latest ledger, which a chore of the service may be doing at the same time. */
async function ingestNow(): Promise<void> {
  const { archive, network } = service.running
  if (!archive) throw new Error('there is no archive')
  const { sequence } = await network.server.getLatestLedger()
  const isDone = async () => {
    await ingest(archive)
    const ranges = await service.db.select().from(archiveRanges)
    return ranges.length >= 3 && ranges.every(({ throughLedger }) => throughLedger >= sequence)
  }
  while (!(await isDone())) await setTimeout(50)
}

const get = (path: string) => service.ask('GET', `/archive/v1${path}`)
const account = () => `/tokens/${token}/accounts/${payer.address}`

test('reports the first and last ledger and the generation', async () => {
  const { status, body, headers } = await get('/health')
  expect(status).toBe(200)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(body).toEqual({
    latest_ledger: expect.any(Number),
    ingested_through: expect.any(Number),
    final_through: null,
    first_ledger: expect.any(Number),
    lag_seconds: expect.any(Number),
    generation: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
})

test('returns the events of an account, starting with its registration', async () => {
  const { status, body, headers } = await get(`${account()}/events`)
  expect(status).toBe(200)
  expect(headers.get('access-control-allow-origin')).toBe('*')
  const events = body.events as { type: string }[]
  expect(events.map(({ type }) => type)).toEqual(['register', 'deposit', 'merge'])
  expect(body).toMatchObject({ complete: true, cursor: null })
})

test('returns the same events as the RPC, byte for byte', async () => {
  const { network } = service.running
  const { oldestLedger } = await network.server.getHealth()
  const served = await network.server._getEvents({
    startLedger: oldestLedger,
    filters: [{ type: 'contract', contractIds: [token] }],
    limit: 100,
  })
  const { body } = await get(`/tokens/${token}/events`)
  const archived = body.events as Record<string, unknown>[]
  expect(archived.length).toBeGreaterThan(2)
  expect(archived.map(({ id, tx_hash, topics_xdr, data_xdr }) => ({ id, tx_hash, topics_xdr, data_xdr }))).toEqual(
    served.events
      .slice(0, archived.length)
      .map(({ id, txHash, topic, value }) => ({ id, tx_hash: txHash, topics_xdr: topic, data_xdr: value })),
  )
})

test('returns the registration as the checkpoint of an account that has sent nothing', async () => {
  const { body } = await get(`${account()}/checkpoint`)
  expect(body).toMatchObject({ event: null, anchor: { type: 'register' }, complete: true })
})

test('continues pages from the cursor', async () => {
  const types: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const { body } = await get(`${account()}/events?limit=1${cursor && `&cursor=${cursor}`}`)
    types.push(...(body.events as { type: string }[]).map(({ type }) => type))
    cursor = body.cursor as string | null
  }
  expect(types).toEqual(['register', 'deposit', 'merge'])
})

test('returns all events of a transaction by its hash', async () => {
  const { body } = await get(`${account()}/events?types=deposit`)
  const [deposit] = body.events as { tx_hash: string }[]
  const found = await get(`/tokens/${token}/events?tx_hash=${deposit?.tx_hash}`)
  expect(found.body).toMatchObject({ events: [deposit], complete: true })
})

test('calls nothing complete that is below the first ledger', async () => {
  const { body } = await get('/health')
  const fromLedger = Number(body.first_ledger)
  const beginAt = (ledger: number) => service.db.update(archiveRanges).set({ fromLedger: ledger })
  await beginAt(fromLedger + 1)
  for (const path of [`/tokens/${token}/events`, `/tokens/${token}/registry`, `${account()}/events`]) {
    const page = await get(`${path}?to_ledger=${fromLedger}`)
    expect(page).toMatchObject({ status: 200, body: { complete: false } })
  }
  await beginAt(fromLedger)
})

test('calls nothing complete that is above the ingested ledgers', async () => {
  const { body } = await get('/health')
  const above = Number(body.ingested_through) + 10_000
  for (const query of [`tx_hash=${'0'.repeat(64)}`, `from_ledger=${above}`, `from_ledger=1&to_ledger=${above}`]) {
    const page = await get(`/tokens/${token}/events?${query}`)
    expect(page).toMatchObject({ status: 200, body: { complete: false } })
  }
  for (const path of [`${account()}/events`, `/tokens/${token}/registry`]) {
    expect((await get(`${path}?from_ledger=${above}`)).body).toMatchObject({ complete: false })
  }
  expect((await get(`${account()}/checkpoint?at_ledger=${above}`)).body).toMatchObject({ complete: false })
})

test('serves the registries separately', async () => {
  // A chore may have stored the token's next ledgers, but not those of the registries yet.
  await expect
    .poll(async () => (await get(`/tokens/${token}/registry`)).body)
    .toMatchObject({ events: expect.any(Array), complete: true })
})

test('reads nothing for a client that has left', async () => {
  captureLog()
  const { body } = await get('/health')
  const paths = [
    '/health',
    `${account()}/checkpoint`,
    `${account()}/events`,
    `/tokens/${token}/events`,
    `/tokens/${token}/events?tx_hash=${body.generation}`,
    `/tokens/${token}/registry`,
  ]
  const left = { destroyed: true, writableEnded: false } as ServerResponse
  const answers = await Promise.all(paths.map((path) => withResponse(left, () => get(path))))
  expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 503))
})

describe('caching', () => {
  const cached = async (query: string) =>
    (await get(`${account()}/events?${query}`)).headers.get('cache-control')?.includes('immutable')

  test('lets a client that names generation and ledgers cache a final page forever', async () => {
    const { body } = await get('/health')
    const first = Number(body.first_ledger)
    const named = `generation=${body.generation}`
    await service.db.update(archiveRanges).set({ throughLedger: first + 500 })
    const [{ id: stream } = { id: 0 }] = await service.db
      .select()
      .from(archiveStreams)
      .where(eq(archiveStreams.role, 'token'))
    const readTwice = { stream, fromLedger: first, throughLedger: first + 399 }
    await service.db.delete(archiveFinalRanges)
    await service.db.insert(archiveFinalRanges).values(readTwice)
    expect(await cached(`${named}&from_ledger=${first}&to_ledger=${first + 400}`)).toBe(false)
    await service.db.update(archiveFinalRanges).set({ throughLedger: first + 500 })
    expect(await cached(`${named}&from_ledger=${first}&to_ledger=${first + 400}`)).toBe(true)
    expect(await cached(`${named}&from_ledger=${first}&to_ledger=${first + 401}`)).toBe(false)
    expect(await cached(`${named}&to_ledger=${first + 400}`)).toBe(false)
    expect(await cached(`from_ledger=${first}&to_ledger=${first + 400}`)).toBe(false)
  })
})

describe('refusals', () => {
  test.each([
    ['another contract', '/tokens/CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC/events'],
    ['a path that names no contract', '/tokens/nothing/events'],
  ])('%s is not found', async (_, path) => {
    expect(await get(path)).toMatchObject({ status: 404, body: { code: 'archive-not-found' } })
  })

  test('responds 404 to a malformed account or another generation', async () => {
    expect(await get(`/tokens/${token}/accounts/nobody/events`)).toMatchObject({ status: 404 })
    expect(await get(`${account()}/events?generation=${'0'.repeat(64)}`)).toMatchObject({ status: 404 })
    expect(await get(`/tokens/${token}/accounts/${accountAt(9)}/events`)).toMatchObject({
      status: 200,
      body: { events: [] },
    })
  })

  test.each([
    'from_ledger=x',
    'to_ledger=0',
    'to_ledger=2147483648',
    'from_ledger=2147483648',
    'limit=1001',
    'limit=0',
    'cursor=1',
    'cursor=constructor',
    'cursor=9999999999999999999-0000000000',
    'types=A',
  ])('%s is 400', async (query) => {
    const { status, body } = await get(`${account()}/events?${query}`)
    const field = query.split('=')[0]?.replace('_', '-')
    expect([status, body.code]).toEqual([400, `${field}-invalid`])
  })
})
