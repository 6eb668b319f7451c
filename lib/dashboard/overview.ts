import { eq } from 'drizzle-orm'
import { relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Attention } from './attention.ts'
import { listFailedBatches } from './failures.ts'
import { listFailedJobs } from './job-attention.ts'
import { listOverdueTransfers } from './overdue-transfers.ts'
import { listStalledBatches } from './stalled-batches.ts'
import { listStalledJobs } from './stalled-jobs.ts'
import { findUsers } from './users.ts'

/**
 * Lists the records of all organisations that need attention and were not acknowledged: the operator's items first,
 * oldest first.
 */
export async function readAttention(
  db: Database,
  now: Date,
): Promise<{ items: Attention[]; otherFailedBatches: number }> {
  const [failed, stalled, overdue, failedJobs, stalledJobs] = await Promise.all([
    listFailedBatches(db),
    listStalledBatches(db, now),
    listOverdueTransfers(db, now),
    listFailedJobs(db),
    listStalledJobs(db, now),
  ])
  const listed = new Set(overdue.map(({ batch }) => batch?.id))
  const onlyStalled = stalled.filter(({ batch }) => !listed.has(batch?.id))
  const items = await complete(db, [...failed.items, ...onlyStalled, ...overdue, ...failedJobs, ...stalledJobs])
  return {
    items: items.sort(
      (one, other) => rankOf(one) - rankOf(other) || (one.since?.getTime() ?? 0) - (other.since?.getTime() ?? 0),
    ),
    otherFailedBatches: failed.others,
  }
}

/** Lists what needs attention about one record, including acknowledged items. */
export async function readAttentionOf(
  db: Database,
  now: Date,
  record: { batch: string } | { transfer: string } | { job: string },
): Promise<Attention[]> {
  if ('transfer' in record) return await complete(db, await listOverdueTransfers(db, now, record))
  if ('job' in record) {
    return await complete(db, [...(await listFailedJobs(db, record)), ...(await listStalledJobs(db, now, record))])
  }
  const [failed, overdue, stalled, failedRuns, stalledRuns] = await Promise.all([
    listFailedBatches(db, record.batch),
    listOverdueTransfers(db, now, record),
    listStalledBatches(db, now, record.batch),
    listFailedJobs(db, record),
    listStalledJobs(db, now, record),
  ])
  const late = overdue.length === 0 ? stalled : overdue
  return await complete(db, [...late, ...failedRuns, ...stalledRuns, ...failed.items])
}

async function complete(db: Database, items: readonly Attention[]): Promise<Attention[]> {
  if (items.length === 0) return []
  const organisations = items.flatMap(({ organisation }) => organisation?.id ?? [])
  const [users, moved] = await Promise.all([
    findUsers(db, organisations),
    db.$count(relayChannels, eq(relayChannels.problem, 'moved')),
  ])
  return items.map((item) => ({
    ...(moved > 0 && item.asksToPay ? postponed(item) : item),
    users: users.get(item.organisation?.id ?? '') ?? item.users ?? [],
  }))
}

/** An item that would have the employer pay payees whom a held channel may have paid, as after a restore from a backup. */
function postponed({ request: _, ...item }: Attention): Attention {
  const remedy = 'Wait until every held channel is released: it may have paid some of these payees.'
  return { ...item, actor: 'operator', remedy }
}

const rankOf = ({ actor }: Attention) => (actor === 'operator' ? 0 : 1)
