import { afterAll, beforeAll, expect, test } from 'vitest'
import { ingest } from '#lib/archive/ingest.ts'
import { foundProblems, readiness } from '#lib/server/readiness.ts'
import { CONTRACTS, type EventRpc, startEventRpc } from '../support/event-rpc.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let rpc: EventRpc
let service: TestService<'none'>
beforeAll(async () => {
  rpc = await startEventRpc()
  rpc.latestLedger = 5_000
  const variables = { STELLAR_RPC_URL: rpc.url, CONFIDENTIAL_TOKEN: CONTRACTS.token }
  service = await openTestService({ variables, now: new Date('2026-03-02T09:00:00Z') })
})
afterAll(async () => {
  await service?.close()
  await rpc?.close()
})

/** The archive field of an uncached response. */
async function readArchive(): Promise<unknown> {
  service.clock.now = new Date(service.clock.now.getTime() + 60_000)
  const { body } = await service.ask('GET', '/ready')
  return body.archive
}

test('reports an archive whose ingestion has not started, or is far behind', async () => {
  const problem = 'ingestion has not started: events will be lost'
  expect(await readArchive()).toEqual({ ok: false, behind: 5_000, historyLeft: 0, problem })
  const { archive } = service.running
  if (!archive) throw new Error('there is no archive')
  await ingest(archive)
  expect(await readArchive()).toEqual({
    ok: true,
    ingestedThrough: 5_000,
    finalThrough: 0,
    behind: 0,
    historyLeft: 5_000,
    gaps: 0,
  })
  rpc.latestLedger = 20_000
  const late = 'ingestion is far behind: events will be lost'
  const left = { ingestedThrough: 5_000, finalThrough: 0, behind: 15_000, historyLeft: 5_000 }
  expect(await readArchive()).toEqual({ ok: false, ...left, gaps: 0, problem: late })
})

test('remembers since when a part has had each problem, until a check finds none', async () => {
  const read = async () => {
    await readArchive()
    return foundProblems(service.running).filter(({ part }) => part === 'archive')
  }
  rpc.latestLedger = 20_000
  const first = await read()
  expect(first).toMatchObject([{ problem: 'ingestion is far behind: events will be lost', since: expect.any(Date) }])
  expect(await read()).toEqual(first)
  rpc.latestLedger = 5_000
  expect(await read()).toEqual([])
})

test('keeps the error behind a problem for operators, and does not show it to everyone', async () => {
  const lost = new Error('the pool failed', { cause: new Error('connect ECONNREFUSED 10.0.0.7:5432') })
  const { database } = await readiness({ ...service.running, database: () => Promise.reject(lost) })
  expect(database).toEqual({ ok: false, problem: 'the database cannot be reached' })
  expect(foundProblems(service.running)).toContainEqual({
    part: 'database',
    problem: 'the database cannot be reached',
    since: expect.any(Date),
    cause: 'connect ECONNREFUSED 10.0.0.7:5432',
  })
})

test('does not report an empty archive as a problem while the RPC has little history', async () => {
  await service.db.execute('TRUNCATE archive_streams, archive_ranges, archive_events CASCADE')
  Object.assign(rpc, { oldestLedger: 19_500, latestLedger: 20_000 })
  expect(await readArchive()).toEqual({ ok: true, behind: 501, historyLeft: 0, problem: 'nothing is archived yet' })
})
