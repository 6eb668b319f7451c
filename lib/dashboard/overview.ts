import { and, eq, inArray, sql } from 'drizzle-orm'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Attention, NAMES_SHOWN, type NamedRecord } from './attention.ts'
import type { BatchLine } from './batches.ts'
import { CONDITIONS } from './conditions.ts'
import { listOverdueTransfers, listStalledJobs } from './delays.ts'
import { listFailedBatches, listFailedJobs } from './failures.ts'
import { batchState } from './lateness.ts'
import { findUsers } from './users.ts'

/**
 * Lists everything in the records of all organisations that needs attention: the operator's items first, oldest first.
 * @param moving the batches in progress
 * @param only the id of a batch to report on alone
 */
export async function readAttention(
  db: Database,
  moving: readonly BatchLine[],
  now: Date,
  only?: string,
): Promise<{ items: Attention[]; otherFailedBatches: number }> {
  const [failed, failedJobs, overdue, stalledJobs] = await Promise.all([
    listFailedBatches(db, now, only),
    only === undefined ? listFailedJobs(db, now) : [],
    listOverdueTransfers(db, now, only),
    only === undefined ? listStalledJobs(db, now) : [],
  ])
  const listed = new Set([...failed.items, ...overdue].map(({ batch }) => batch?.id))
  const stalled = moving.filter((batch) => !listed.has(batch.id) && batchState(batch, now) === 'stalled')
  const waiting = await findWaiting(
    db,
    stalled.map(({ id }) => id),
  )
  const stalledBatches = stalled.map((batch) => describeStalled(batch, waiting.get(batch.id) ?? []))
  const items = [...failed.items, ...stalledBatches, ...overdue, ...failedJobs, ...stalledJobs]
  const users = await findUsers(
    db,
    items.flatMap(({ organisation }) => organisation?.id ?? []),
  )
  return {
    items: items
      .map((item) => ({ ...item, users: users.get(item.organisation?.id ?? '') ?? [] }))
      .sort((one, other) => rankOf(one) - rankOf(other) || (one.since?.getTime() ?? 0) - (other.since?.getTime() ?? 0)),
    otherFailedBatches: failed.others,
  }
}

/** Finds the first few contractors of each batch whose payouts are not sent, by batch. */
async function findWaiting(db: Database, ids: readonly string[]): Promise<Map<string, NamedRecord[]>> {
  if (ids.length === 0) return new Map()
  const { batch, sequence, status } = payouts
  const place = sql<number>`row_number() over (partition by ${batch} order by ${sequence})`
  const unsent = db
    .select({ batch, id: contractors.id, name: contractors.name, place: place.as('place') })
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(and(inArray(batch, [...ids]), eq(status, 'ready')))
    .as('unsent')
  const rows = await db
    .select()
    .from(unsent)
    .where(sql`${unsent.place} <= ${NAMES_SHOWN}`)
    .orderBy(unsent.batch, unsent.place)
  const waiting = rows.map(({ batch: of, id, name }) => ({ of, id, name }))
  return Map.groupBy(waiting, ({ of }) => of)
}

function describeStalled(batch: BatchLine, contractors: readonly NamedRecord[]): Attention {
  const { id, name, organisation, organisationName, payoutCount, settledCount, failedCount, progressedAt } = batch
  const waiting = payoutCount - settledCount - failedCount
  return {
    ...CONDITIONS.batchStalled.notice,
    key: `stalled ${id}`,
    since: progressedAt ?? undefined,
    why: `${settledCount} of ${payoutCount} paid; the employer’s application has stopped sending, and ${waiting} ${waiting === 1 ? 'payout is' : 'payouts are'} waiting`,
    actor: 'operator',
    remedy: 'Ask the employer to open its application and continue, or to cancel the rest.',
    organisation: { id: organisation, name: organisationName },
    batch: { id, name },
    contractors,
    moreContractors: Math.max(0, waiting - contractors.length),
    page: `/batches/${id}?status=ready`,
  }
}

const rankOf = ({ actor }: Attention) => (actor === 'operator' ? 0 : 1)
