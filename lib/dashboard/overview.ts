import { and, eq, inArray, isNotNull } from 'drizzle-orm'
import { paymentStops, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Attention } from './attention.ts'
import { listFailedBatches } from './failed-batches.ts'
import { isUnresolved, listFailedJobs } from './failed-jobs.ts'
import { listFoundPayments } from './found-payments.ts'
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
  const [failed, stalled, overdue, failedJobs, stalledJobs, paid] = await Promise.all([
    listFailedBatches(db),
    listStalledBatches(db, now),
    listOverdueTransfers(db, now),
    listFailedJobs(db),
    listStalledJobs(db, now),
    listFoundPayments(db),
  ])
  const listed = new Set(overdue.map(({ batch }) => batch?.id))
  const onlyStalled = stalled.filter(({ batch }) => !listed.has(batch?.id))
  const items = await complete(db, [
    ...failed.items,
    ...onlyStalled,
    ...overdue,
    ...failedJobs,
    ...stalledJobs,
    ...paid,
  ])
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
  if ('transfer' in record) {
    const lists = [listOverdueTransfers(db, now, record), listFoundPayments(db, record)]
    return await complete(db, (await Promise.all(lists)).flat())
  }
  if ('job' in record) {
    return await complete(db, [...(await listFailedJobs(db, record)), ...(await listStalledJobs(db, now, record))])
  }
  const [failed, overdue, stalled, failedRuns, stalledRuns, paid] = await Promise.all([
    listFailedBatches(db, record.batch),
    listOverdueTransfers(db, now, record),
    listStalledBatches(db, now, record.batch),
    listFailedJobs(db, record),
    listStalledJobs(db, now, record),
    listFoundPayments(db, record),
  ])
  const late = overdue.length === 0 ? stalled : overdue
  return await complete(db, [...late, ...failedRuns, ...stalledRuns, ...failed.items, ...paid])
}

/** Adds the users, and has no employer asked for a payment that may not be safe. */
async function complete(db: Database, items: readonly Attention[]): Promise<Attention[]> {
  if (items.length === 0) return []
  const organisations = items.flatMap(({ organisation }) => organisation?.id ?? [])
  const [users, held, tampered] = await Promise.all([
    findUsers(db, organisations),
    db.$count(paymentStops, isNotNull(paymentStops.since)),
    findTampered(
      db,
      items.flatMap(({ batch }) => batch?.id ?? []),
    ),
  ])
  return items.map((item) => ({
    ...(item.asksToPay && held > 0 ? postponed(item, UNTIL_RESUMED) : item),
    ...(item.asksToPay && tampered.has(item.batch?.id ?? '') && postponed(item, UNTIL_EXPLAINED)),
    users: users.get(item.organisation?.id ?? '') ?? item.users ?? [],
  }))
}

const UNTIL_RESUMED = 'Wait until payments go on: some of these payees may have been paid.'
const UNTIL_EXPLAINED = 'Pay nothing of this batch: its run differs from what the employer has signed.'

/** An item that asks nothing of the employer for now. */
function postponed(item: Attention, remedy: string): Attention {
  return { ...item, actor: 'operator', remedy, request: undefined }
}

/** Finds the batches with a run whose rows differ from its manifest. */
async function findTampered(db: Database, ids: readonly string[]): Promise<Set<string | null>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectDistinct({ batch: relayJobs.batch })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
    .where(and(inArray(relayJobs.batch, [...ids]), eq(relayLines.error, 'manifest-invalid'), isUnresolved))
  return new Set(rows.map(({ batch }) => batch))
}

const rankOf = ({ actor }: Attention) => (actor === 'operator' ? 0 : 1)
