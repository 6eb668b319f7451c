import { and, eq, inArray, isNotNull } from 'drizzle-orm'
import { paymentStops, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEABLE } from './acknowledgements.ts'
import { type Attention, type AttentionRow, MAX_LISTED, type RecordCondition } from './attention.ts'
import { CONDITIONS, countRecords, readRows, type Subject } from './attention-rows.ts'
import { isUnresolved } from './line-state.ts'
import { findUsers } from './organisations.ts'

/** The batches with failures beyond the listed ones are counted up to this number. */
const MAX_COUNTED = 1_000

/**
 * Lists the records of all organisations that need attention and were not acknowledged: the operator's items first,
 * oldest first.
 */
export async function readAttention(
  db: Database,
  now: Date,
): Promise<{ items: Attention[]; otherFailedBatches: number }> {
  const rows = await readRows(db, now)
  const failed = rows.filter(({ condition }) => condition === 'payoutsFailed').length
  const [items, all] = await Promise.all([
    describeRows(db, rows),
    failed < MAX_LISTED ? failed : countRecords(db, 'payoutsFailed', now, MAX_COUNTED),
  ])
  return {
    items: items.toSorted(
      (one, other) => rankOf(one) - rankOf(other) || (one.since?.getTime() ?? 0) - (other.since?.getTime() ?? 0),
    ),
    otherFailedBatches: Math.max(0, all - failed),
  }
}

/** Lists what needs attention about one record, including acknowledged items. */
export const readAttentionOf = async (db: Database, now: Date, record: Subject): Promise<Attention[]> =>
  await describeRows(db, await readRows(db, now, record))

async function describeRows(db: Database, rows: readonly AttentionRow[]): Promise<Attention[]> {
  const undecided = new Set(rows.filter(isUndecided).map(({ batch }) => batch?.id))
  // An employer is not asked for the rest of a batch whose transfer is not decided.
  const listed = rows.filter(({ condition, batch }) => condition !== 'batchStalled' || !undecided.has(batch?.id))
  const items = [...Map.groupBy(listed, ({ condition }) => condition)].map(async ([condition, same]) => {
    const { level, tab, describe }: RecordCondition = CONDITIONS[condition]
    const ids = same.map(({ id }) => id)
    const noticeOf = await describe(db, ids, same)
    return same.flatMap((row): Attention[] => {
      const notice = noticeOf(row)
      return notice ? [{ ...itemOf(row, tab), level, ...notice }] : []
    })
  })
  return await complete(db, (await Promise.all(items)).flat())
}

const isUndecided = ({ condition }: AttentionRow) => condition === 'transferOverdue' || condition === 'outcomeUnknown'

const PAGES = { batch: '/batches', job: '/jobs', transfer: '/transfers' } as const

/** The page of a record, where one of its tabs lists the cause. A webhook is on the page of its organisation. */
function pageOf({ condition, id, organisation }: AttentionRow, tab: string | undefined): string {
  const { record } = ACKNOWLEDGEABLE[condition]
  if (record === 'webhook') return organisation ? `/organisations/${organisation.id}#webhooks` : ''
  return `${PAGES[record]}/${id}${tab ? `?status=${tab}` : ''}`
}

function itemOf(row: AttentionRow, tab: string | undefined) {
  const { condition, id, lastEvent, acknowledgement, batch, organisation, user, contractor } = row
  const { record } = ACKNOWLEDGEABLE[condition]
  return {
    key: `${condition} ${id}`,
    since: lastEvent,
    ...(record === 'job' && !batch && { name: `Relay job ${id.slice(0, 8)}` }),
    ...(organisation ? { organisation } : { users: user ? [user] : [] }),
    ...(batch && { batch: { id: batch.id, name: batch.name } }),
    ...(contractor && { contractors: [contractor] }),
    acknowledgeable: { condition, subject: id, lastEvent },
    acknowledgement,
    page: pageOf(row, tab),
  }
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
