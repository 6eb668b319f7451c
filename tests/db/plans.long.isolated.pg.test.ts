import { globSync } from 'node:fs'
import { and, desc, eq, isNull } from 'drizzle-orm'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { relayLines } from '#drizzle/schema/relay.ts'
import { OPERATIONS } from '#lib/api/interface.ts'
import { mintOperatorSession } from '#lib/auth/operator.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { AUDIT } from '#lib/dashboard/audit.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { readList } from '#lib/dashboard/list.ts'
import { MAX_HITS, searchRecords } from '#lib/dashboard/search.ts'
import { inviteToken } from '#lib/directory/contractors/invite-token.ts'
import { endLine } from '#lib/relay/chores.ts'
import { openProgress } from '#lib/relay/progress.ts'
import { runChores } from '#lib/server/maintenance.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import { openRelayService, type RelayService } from '../relay/relay-service.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { makeChoresDue } from '../support/due-chores.ts'
import { type FilledRecords, fillDatabase } from '../support/filled-database.ts'
import { collectPlans, explainAll } from '../support/plans.ts'
import { isExcessive } from './large-reads.ts'
import { FILES, LISTS, PAGES, WITHOUT_RECORDS } from './page-cases.ts'
import { READS, WITHOUT_READS } from './read-cases.ts'
import { WRITES } from './write-cases.ts'

const jar = vi.hoisted(() => new Map<string, { value: string }>())
vi.mock('next/headers', () => ({ cookies: async () => jar }))
vi.mock('next/server', () => ({ connection: async () => undefined }))

const TOKEN = 'a token for machines'

let database: TestDatabase
let service: RelayService
let records: FilledRecords & { token: string; invite: string; prefix: string; webhook: string }
let collected: ReturnType<typeof collectPlans>

beforeAll(async () => {
  database = await startDatabase()
  service = await openRelayService({
    database,
    channels: 1,
    choresEveryMs: 0,
    closeMs: 1_000,
    variables: { METRICS_TOKEN: TOKEN, CRON_SECRET: TOKEN, OPERATOR_PASSWORD: 'the password of the plans' },
  })
  const { token } = service.ledger.network
  const relayKey = await keyIdOf(publicHalf(service.key))
  const filledRecords = await fillDatabase(database.url, { payouts: 100_000, token, relayKey })
  const session = await service.wallet(filledRecords.largeEmployer)
  const invited = await service.ask('POST', '/contractors', {
    session,
    body: { name: 'Ada', email: 'ada@example.com' },
  })
  await service.ask('POST', `/contractors/${invited.body.id}/invite`, { session })
  const { secret } = service.running.settings.invites
  const invite = inviteToken(secret, { contractor: String(invited.body.id), version: 1 })
  const average = await service.wallet(filledRecords.employer)
  const hooked = await service.ask('POST', '/webhooks', { session: average, body: { url: 'https://1.1.1.1/events' } })
  const webhook = String(hooked.body.id)
  records = { ...filledRecords, token, invite, prefix: filledRecords.organisation.slice(0, 8), webhook }
  await explainAll(database.url)
  const db = await service.running.database()
  collected = collectPlans((db as unknown as { $client: Pool }).$client)
  // The service may still use a connection that was just ended.
  const isExplained = async () => {
    await service.ask('GET', '/me', { session })
    return collected.take().plans > 0
  }
  await vi.waitUntil(isExplained, { timeout: 300_000 })
  const { operator } = service.running.settings
  if (!operator) throw new Error('the dashboard is closed')
  jar.set('operator-3000', { value: await mintOperatorSession(operator, 'Ada', new Date()) })
}, 600_000)
afterAll(async () => {
  await service?.close()
  await database?.drop()
})

/** Requires that `work` sends statements, none of which reads more of a growing table than any request needs. */
async function expectIndexed<Result>(work: () => Promise<Result>): Promise<Result> {
  collected.take()
  const result = await work()
  const { plans, steps } = collected.take()
  expect(plans).toBeGreaterThan(0)
  expect(steps.filter(isExcessive)).toEqual([])
  return result
}

const filledIn = (path: string) =>
  path.replace(/\{(\w+)\}/g, (_, name: keyof typeof records) => records[name] ?? `no ${name}`)

const requests = Object.values(READS).flatMap((of) =>
  (['average', 'largest', 'machine'] as const).flatMap((caller) =>
    (of[caller] ?? []).map((path) => [path, caller] as const),
  ),
)

test('every operation that reads has a request', () => {
  const reading = OPERATIONS.filter(({ method }) => method === 'GET').map(({ id }) => id)
  expect([...Object.keys(READS), ...WITHOUT_READS].sort()).toEqual(reading.sort())
})

test.each(requests)('GET %s of the %s caller reads only what it returns', async (path, caller) => {
  const employer = caller === 'average' ? records.employer : records.largeEmployer
  const sent =
    caller === 'machine'
      ? { headers: { authorization: `Bearer ${TOKEN}` } }
      : { session: await service.wallet(employer) }
  const first = await expectIndexed(() => service.ask('GET', filledIn(path), sent))
  expect(first.status).toBe(200)
  const next = first.link && filledIn(path).replace(/(\?.*)?$/, first.link)
  if (next) expect(await expectIndexed(() => service.ask('GET', next, sent))).toMatchObject({ status: 200 })
})

type Params = Promise<Record<string, string>>
type Page = (props: { params: Params; searchParams: Params }) => Promise<{ type: unknown; props: { list?: Cursors } }>
type Cursors = { next: string | undefined; previous: string | undefined } | undefined

const pageFiles = globSync('app/**/page.tsx').map((file) =>
  file.slice('app/'.length, -'page.tsx'.length).replace(/\/$/, ''),
)

/** Renders a page, and then its second page and the one before that if it is a list. */
async function readPage(path: string): Promise<void> {
  const [address = '', query = ''] = filledIn(path).split('?')
  const { file, params } = matchPage(address)
  const { default: Page } = (await import(new URL(`../../app/${file}/page.tsx`, import.meta.url).href)) as {
    default: Page
  }
  const read = async (more: Record<string, string>) => {
    const searchParams = { ...Object.fromEntries(new URLSearchParams(query)), ...more }
    const page = await Page({ params: Promise.resolve(params), searchParams: Promise.resolve(searchParams) })
    expect(page.type).not.toHaveProperty('name', 'RecordNotFound')
    return page.props.list
  }
  const first = await read({})
  const second = first?.next ? await read({ after: first.next }) : undefined
  if (second?.previous) await read({ before: second.previous })
}

/** The file of a page's address, and the parameters in it. */
function matchPage(address: string): { file: string; params: Record<string, string> } {
  for (const file of pageFiles.toSorted()) {
    const route = file.replace(/^\(operator\)\//, '')
    const match = new RegExp(`^/${route.replace(/\[(\w+)\]/g, '(?<$1>[^/]+)')}$`).exec(address)
    if (match) return { file, params: { ...match.groups } }
  }
  throw new Error(`no page has the address ${address}`)
}

describe('the page', () => {
  test('of every file has a case', () => {
    const shown = [...PAGES, ...LISTS.map(([path]) => path)].map((path) => matchPage(path.split('?')[0] ?? '').file)
    expect(new Set([...shown, ...WITHOUT_RECORDS])).toEqual(new Set(pageFiles))
  })

  test.each(PAGES)('%s reads only what it shows', (path) => expectIndexed(() => readPage(path)))

  test.each(LISTS.flatMap(([path, checks]) => Object.keys(checks).map((filter) => [path, filter] as const)))(
    '%s, filtered by %s, reads only what it shows',
    (path, filter) => {
      const address = new URL(path, 'http://dashboard')
      address.searchParams.set(filter, filterValue(path, filter))
      return expectIndexed(() => readPage(decodeURIComponent(address.pathname + address.search)))
    },
  )
})

/** A value of a list's filter. */
function filterValue(path: string, filter: string): string {
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)
  const reasons = { '/jobs': 'the recipient is not registered', '/transfers?view=refused': 'quota-transfers' }
  const values: Record<string, string> = {
    ...{ organisation: records.largeOrganisation, batch: records.largeBatch, contractor: records.contractor },
    ...{ account: records.largeEmployer, actor: `ledger:${records.employer}`, record: records.transfer },
    ...{ action: 'payout.failed', request: 'a-request', status: 'failed', view: 'failed', sort: 'oldest' },
    ...{ from: day(40), to: day(39), reason: reasons[path as keyof typeof reasons] ?? 'txFailed' },
  }
  const value = values[filter]
  if (value === undefined) throw new Error(`no value for the filter ${filter}`)
  return value
}

describe('the file', () => {
  test('of every list has a case', () => {
    const files = globSync('app/**/*.csv/route.ts').map((file) => file.split('/').at(-2))
    expect(new Set(FILES.map((path) => path.split(/[/?]/)[1]))).toEqual(new Set(files))
  })

  test.each(FILES)('%s reads only its first two parts', async (path) => {
    const address = filledIn(path)
    const { GET } = (await import(
      new URL(`../../app/(operator)/${address.split(/[/?]/)[1]}/route.ts`, import.meta.url).href
    )) as {
      GET: (request: Request, context: object) => Promise<Response>
    }
    const readParts = async () => {
      const response = await GET(new Request(`http://localhost:3000${address}`), {})
      expect(response.status).toBe(200)
      const reader = response.body?.getReader()
      for (let part = 0; part < 3; part += 1) await reader?.read()
      await reader?.cancel()
    }
    await expectIndexed(readParts)
  })
})

/** The rows that `work` reads from a table, and the indexes that it uses. */
async function readsOf(table: string, work: () => Promise<unknown>): Promise<{ rows: number; indexes: Set<unknown> }> {
  collected.take()
  await work()
  const steps = collected.take().steps.filter((step) => step.table === table)
  return { rows: Math.max(0, ...steps.map(({ rows }) => rows)), indexes: new Set(steps.map(({ index }) => index)) }
}

test('a status poll reads one row of batches and no payout, for a batch of any size', async () => {
  const session = await service.wallet(records.largeEmployer)
  const poll = () => service.ask('GET', `/batches/${records.largeBatch}/status`, { session })
  expect((await readsOf('batches', poll)).rows).toBe(1)
  expect((await readsOf('payouts', poll)).rows).toBe(0)
})

test.each(['', '&status=ready', '&from=2026-01-01&to=2100-01-01'])(
  'a page of payouts%s reads no more of them than it shows',
  async (query) => {
    const session = await service.wallet(records.largeEmployer)
    const { rows } = await readsOf('payouts', () => service.ask('GET', `/payouts?limit=100${query}`, { session }))
    expect(rows).toBe(101)
  },
)

test.each([
  ['?actor=service:relay', 'audit_log_actor'],
  ['?actor=service:registration check', 'audit_log_actor'],
  ['?actor=service:registration sweep', 'audit_log_actor'],
  ['?actor=operator:Ada', 'audit_log_actor'],
  ['?action=batch.removed', 'audit_log_newest_of_action'],
  ['?action=payout.paid', 'audit_log_pkey'],
])('the entries of %s are found by the index %s', async (query, index) => {
  const { filters } = readFilters(AUDIT.filters, Object.fromEntries(new URLSearchParams(query)))
  const db = await service.running.database()
  expect((await readsOf('audit_log', () => readList(AUDIT, { db, now: new Date() }, filters, {}))).indexes).toEqual(
    new Set([index]),
  )
})

test.each(['ontractor', 'no such part'])('a search for %j reads contractors by their index of parts', async (part) => {
  const db = await service.running.database()
  const { rows, indexes } = await readsOf('contractors', () => searchRecords(db, part))
  expect(rows).toBeLessThanOrEqual(MAX_HITS + 1)
  expect(indexes).toContain('contractors_parts')
})

test('the line of a large run that ends, and the proof of one, read none of the others', async () => {
  const db = await service.running.database()
  const [line] = await db
    .select()
    .from(relayLines)
    .where(and(eq(relayLines.job, records.run), isNull(relayLines.leasedUntil), IS_OPEN_LINE))
    .orderBy(desc(relayLines.position))
  if (!line) throw new Error('no line waits')
  const { relayKey = '' } = service.running.batch ?? {}
  const store = { database: service.running.database, relayKey, token: records.token, now: () => new Date() }
  const work = async () => {
    await openProgress()(db, line, async () => undefined)
    expect(await endLine(store, line, { outcome: 'failed', error: 'recipient-unregistered' })).toBe(true)
  }
  expect((await readsOf('relay_lines', work)).rows).toBeLessThanOrEqual(20)
})

test.each(Object.entries(WRITES))('%s reads only what it changes', async (_, prepare) => {
  const work = await prepare(service, records)
  const { status, body } = await expectIndexed(work)
  expect({ status, body }).toMatchObject({ status: 200 })
})

test('the chores read only what is due, and none fails', async () => {
  await makeChoresDue(database.url)
  const report = await expectIndexed(() => runChores(service.running, 0))
  expect(Object.entries(report).filter(([, count]) => count === null)).toEqual([])
  // A transfer that was settled a moment ago may have begun a round of the archive, which has stored the events.
  const idle = Object.entries(report).filter(([name, count]) => count === 0 && name !== 'archive')
  // Only PGlite needs its tables analyzed, no contractor has registered, and there are neither a mail server nor deliveries.
  const names = idle.map(([name]) => name).toSorted()
  expect(names).toEqual(['contractors', 'deliveries', 'mails', 'tables', 'webhooks'])
})
