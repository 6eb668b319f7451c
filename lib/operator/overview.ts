import type { Database } from '#lib/db/connection.ts'
import type { Attention } from './attention.ts'
import type { MovingBatch } from './batches.ts'
import { listFailedBatches, listFailedJobs } from './failures.ts'
import { listOldOpenTransfers, listSlowJobs } from './standstill.ts'

/** A batch of which nothing has moved for so long stands still (ms). */
export const STILL_AFTER_MS = 30 * 60_000

/**
 * What the records of all organisations ask a person for: first what the operator has to do, the oldest of it first.
 * `moving` are the batches under way.
 */
export async function readAttention(
  db: Database,
  moving: readonly MovingBatch[],
  now: Date,
): Promise<{ items: Attention[]; olderFailedBatches: number }> {
  const [failed, failedJobs, open, slowJobs] = await Promise.all([
    listFailedBatches(db, now),
    listFailedJobs(db, now),
    listOldOpenTransfers(db, now),
    listSlowJobs(db, now),
  ])
  const told = new Set([...failed.items, ...open].map(({ batch }) => batch?.id))
  const still = moving.filter(({ id }) => !told.has(id)).flatMap((batch) => describeStandstill(batch, now))
  const items = [...failed.items, ...still, ...open, ...failedJobs, ...slowJobs]
  return {
    items: items.sort(
      (one, other) => rankOf(one) - rankOf(other) || (one.since?.getTime() ?? 0) - (other.since?.getTime() ?? 0),
    ),
    olderFailedBatches: failed.older,
  }
}

function describeStandstill(batch: MovingBatch, now: Date): Attention[] {
  if (now.getTime() - batch.progressedAt.getTime() < STILL_AFTER_MS) return []
  const { id, name, organisation, organisationName, payoutCount, settledCount, failedCount, progressedAt } = batch
  const waiting = payoutCount - settledCount - failedCount
  return [
    {
      key: `still ${id}`,
      level: 'busy',
      since: progressedAt,
      what: 'The batch stands still',
      why: `${settledCount} of ${payoutCount} paid, ${waiting} not sent: the service is not asked to pay them`,
      actor: 'operator',
      remedy: 'Ask the employer to go on paying in its application, or to cancel what is left.',
      organisation: { id: organisation, name: organisationName },
      batch: { id, name },
      page: `/batches/${id}`,
    },
  ]
}

const rankOf = ({ actor }: Attention) => (actor === 'operator' ? 0 : 1)
