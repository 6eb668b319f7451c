import { and, eq, inArray, sql } from 'drizzle-orm'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Attention, NAMES_SHOWN, type NamedRecord } from './attention.ts'
import type { BatchLine } from './batches.ts'
import { listFailedBatches, listFailedJobs } from './failures.ts'
import { batchState } from './lateness.ts'
import { listOldOpenTransfers, listSlowJobs } from './standstill.ts'
import { findUsers } from './users.ts'

/**
 * Everything in the records of all organisations that a person has to see to: first what the operator has to do, the
 * oldest first. `moving` are the batches under way.
 * @param only the id of a batch: then only what concerns this batch
 */
export async function readAttention(
  db: Database,
  moving: readonly BatchLine[],
  now: Date,
  only?: string,
): Promise<{ items: Attention[]; otherFailedBatches: number }> {
  const [failed, failedJobs, open, slowJobs] = await Promise.all([
    listFailedBatches(db, now, only),
    only === undefined ? listFailedJobs(db, now) : [],
    listOldOpenTransfers(db, now, only),
    only === undefined ? listSlowJobs(db, now) : [],
  ])
  const told = new Set([...failed.items, ...open].map(({ batch }) => batch?.id))
  const standing = moving.filter((batch) => !told.has(batch.id) && batchState(batch, now) === 'still')
  const waiting = await findWaiting(
    db,
    standing.map(({ id }) => id),
  )
  const still = standing.map((batch) => describeStandstill(batch, waiting.get(batch.id) ?? []))
  const items = [...failed.items, ...still, ...open, ...failedJobs, ...slowJobs]
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

/** The first few contractors of each batch whose payouts were not sent yet, by batch. */
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
  const named = rows.map(({ batch: of, id, name }) => ({ of, id, name }))
  return Map.groupBy(named, ({ of }) => of)
}

function describeStandstill(batch: BatchLine, contractors: readonly NamedRecord[]): Attention {
  const { id, name, organisation, organisationName, payoutCount, settledCount, failedCount, progressedAt } = batch
  const waiting = payoutCount - settledCount - failedCount
  return {
    key: `still ${id}`,
    level: 'late',
    since: progressedAt ?? undefined,
    what: 'The batch stands still',
    why: `${settledCount} of ${payoutCount} paid; the employer’s application has stopped sending, and ${waiting} ${waiting === 1 ? 'waits' : 'wait'}`,
    actor: 'operator',
    remedy: 'Ask the employer to open its application and go on paying, or to cancel what is left.',
    organisation: { id: organisation, name: organisationName },
    batch: { id, name },
    contractors,
    moreContractors: Math.max(0, waiting - contractors.length),
    page: `/batches/${id}?status=ready`,
  }
}

const rankOf = ({ actor }: Attention) => (actor === 'operator' ? 0 : 1)
