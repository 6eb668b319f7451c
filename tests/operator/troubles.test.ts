import { afterAll, beforeAll, expect, test } from 'vitest'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { listTroubles } from '#lib/operator/troubles.ts'
import { cloneDatabase } from '../support/database.ts'

/** Minutes past noon. */
const at = (minutes: number) => new Date(Date.UTC(2026, 10, 20, 12, minutes))
const JOB = '00000000-0000-4000-8000-000000000001'

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database

/** A transfer, accepted and settled so many minutes past noon. */
async function record(innerHash: string, status: 'success' | 'failed' | 'dead', accepted: number, settled: number) {
  const rest = { account: 'G', recipient: 'G', sponsor: 'S', envelope: 'x', bid: 1n, maxTime: 0, quotaDay: 'd' }
  const times = { createdAt: at(accepted), settledAt: at(settled) }
  await db
    .insert(sponsoredTransfers)
    .values({ ...rest, ...times, innerHash, outerHash: `outer ${innerHash}`, status, sinceLedger: 1 })
}

const refuse = (innerHash: string, minutes: number) =>
  recordAudit(db, at(minutes), {
    organisation: undefined,
    actor: { kind: 'ledger', sub: 'GCHANNEL' },
    action: 'transfer.refused',
    subject: { kind: 'transfer', id: innerHash },
    detail: { reason: 'memo' },
  })

beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
  await record('slow', 'dead', 0, 50)
  await record('slow, too', 'failed', 1, 49)
  await record('quick', 'failed', 30, 31)
  await record('quick, too', 'failed', 35, 36)
  await record('well', 'success', 40, 60)
  await refuse('refused', 48)
  await db.insert(batchJobs).values({ id: JOB, userKind: 'idp', userSub: 'ada', createdAt: at(0) })
  const item = { job: JOB, quotaAccount: 'idp:ada', queuedAt: at(0) }
  await db.insert(batchItems).values([
    { ...item, position: 0, status: 'failed', settledAt: at(51), error: 'no channel has enough to pay it' },
    { ...item, position: 1, status: 'paid', settledAt: at(52), hash: 'h' },
    { ...item, position: 2, status: 'failed', settledAt: at(20), error: 'over quota', innerHash: 'of an item' },
    { ...item, position: 3, status: 'queued', sealedAmount: 'x' },
  ])
  await refuse('of an item', 19)
})
afterAll(() => clone.drop())

test('are told by when they ended, not by when they began', async () => {
  const ids = (await listTroubles(db, 4)).map(({ id, at }) => [id, at.getUTCMinutes()])
  expect(ids).toEqual([
    [`item 0 of ${JOB}`, 51],
    ['slow', 50],
    ['slow, too', 49],
    [expect.stringMatching(/^refusal \d+$/), 48],
  ])
})

test('items of jobs are among them, with their reason, and once', async () => {
  const troubles = await listTroubles(db, 50)
  expect(troubles.map(({ at }) => at.getUTCMinutes())).toEqual([51, 50, 49, 48, 36, 31, 20])
  expect(troubles[0]).toMatchObject({ kind: 'failed', account: 'idp:ada' })
  expect(troubles[0]?.why).toBe('transfer 1 of a job of the relay’s: no channel has enough to pay it')
  expect(troubles.at(-1)?.why).toBe('transfer 3 of a job of the relay’s: over quota')
})
