import { and, eq, inArray, isNotNull, or } from 'drizzle-orm'
import { z } from 'zod'
import { BATCH_STATUSES, type BatchStatus, batches, payouts } from '#drizzle/schema/directory.ts'
import type { RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor, violatedConstraint } from '#lib/db/connection.ts'
import { transactOnce } from '#lib/db/idempotency.ts'
import { besidePlace, byTime, orderedBy } from '#lib/db/keyset.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { cutPage, type Page, type pageQuery, pageRequest, placeOf, rowsToRead } from '#lib/db/paging.ts'
import { readRows } from '#lib/db/rows.ts'
import { contains } from '#lib/db/search.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { externalIdField, externalIdShape } from '#lib/text/external-id.ts'
import { plainText } from '#lib/text/plain-text.ts'
import type { EmployerContext } from '../context.ts'
import { isId } from '../ids.ts'
import { defineList, listQuery } from '../lists.ts'
import { refuseDissolved, requireMember } from '../organisations.ts'
import { PAYOUT_COLUMNS, type Payout, payoutShape, presentPayout } from '../payouts/payouts.ts'
import { columnsOf, presentAs } from '../presentation.ts'
import type { Employer } from '../users.ts'
import { NEWEST_RUN, runShape } from './newest-run.ts'
import { BATCH_MOVES, countPayouts, lockBatches } from './progress.ts'

export const newBatch = z.object({ name: plainText(200), externalId: externalIdField.nullish() })

export const batchShape = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(BATCH_STATUSES),
  payoutCount: z.int().meta({ description: 'payouts that are not canceled' }),
  settledCount: z.int().meta({ description: 'payouts that are paid' }),
  failedCount: z.int().meta({ description: 'payouts that failed; they can be sent again' }),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional(),
  completedAt: z.iso.datetime().optional(),
  externalId: externalIdShape,
})
export type Batch = z.output<typeof batchShape>

export const batchesShape = z.object({ batches: z.array(batchShape) })

export const batchWithPayoutsShape = batchShape.extend({ payouts: z.array(payoutShape), run: runShape.optional() })
export type BatchWithPayouts = z.output<typeof batchWithPayoutsShape>

export const BATCH_COLUMNS = columnsOf(batches, batchShape)

const presentBatch = presentAs(batchShape)

/**
 * Creates an empty batch that accepts instructions.
 * @throws Refusal `external-id-taken`, `organisation-dissolved`
 */
export async function createBatch(
  context: EmployerContext,
  { name, externalId }: z.output<typeof newBatch>,
): Promise<Batch> {
  const { employer, now } = context
  const { organisation } = employer
  const create = async (tx: Database) => {
    const row = { organisation, externalId, name, createdAt: now }
    const [batch] = await tx.insert(batches).values(row).returning(BATCH_COLUMNS)
    if (!batch) throw new Error('the insert returned no row')
    await requireMember(tx, employer)
    await recordAudit(tx, now, { ...employer, action: 'batch.created', subject: batch.id })
    return presentBatch(batch)
  }
  const creating = transactOnce(context, organisation, { work: create, refer: ({ id }) => ({ ids: [id] }) })
  return await creating.catch((error: unknown) => {
    if (violatedConstraint(error) !== 'batches_unique_external_id') return refuseDissolved(error)
    throw new Refusal('external-id-taken', 'another batch has this externalId')
  })
}

/**
 * Presents a batch again that a request has made.
 * @throws Refusal `batch-not-found` if it was deleted
 */
export async function presentCreatedBatch(
  { db, employer }: EmployerContext,
  { ids: [id = ''] }: RecordedOutcome,
): Promise<Batch> {
  const [batch] = await db.select(BATCH_COLUMNS).from(batches).where(isOwnBatch(employer, id))
  if (!batch) throw batchNotFound()
  return presentBatch(batch)
}

/** The query of GET /batches. */
export const batchesQuery = listQuery(BATCH_STATUSES, 'name')

const LIST = defineList(batches, { ...BATCH_COLUMNS, sequence: batches.sequence }, (organisation) =>
  eq(batches.organisation, organisation),
)

/** Lists an employer's batches, newest first. */
export async function listBatches(
  { db, employer: { organisation } }: EmployerContext,
  query: z.output<typeof batchesQuery>,
): Promise<Page<Batch>> {
  const { status, q, externalId } = query
  const filter = and(
    status && eq(batches.status, status),
    externalId === undefined ? undefined : eq(batches.externalId, externalId),
    contains(q, batches.name),
  )
  const { items, ...page } = await LIST.readPage(db, organisation, {
    filter,
    page: pageRequest(query),
    counter: 'batchCount',
  })
  return { items: items.map(presentBatch), ...page }
}

/**
 * Returns a batch and a page of its payouts, in the order of their instructions.
 * @throws Refusal `batch-not-found`
 */
export async function findBatch(
  { db, employer }: EmployerContext,
  { id, ...query }: z.output<typeof pageQuery> & { id: string },
): Promise<{ batch: Omit<BatchWithPayouts, 'payouts'>; payouts: Page<Payout> }> {
  const columns = { ...BATCH_COLUMNS, run: NEWEST_RUN }
  const [batch] = isId(id) ? await db.select(columns).from(batches).where(isOwnBatch(employer, id)) : []
  if (!batch) throw batchNotFound()
  const page = pageRequest(query)
  const order = { ...byTime(payouts), ascending: true }
  const isOnPage = and(eq(payouts.batch, id), besidePlace(order, page.after && placeOf(page.after)))
  const rows = await readRows(db, employer.organisation, (reader) =>
    reader
      .select({ ...PAYOUT_COLUMNS, sequence: payouts.sequence })
      .from(payouts)
      .where(isOnPage)
      .orderBy(...orderedBy(order))
      .limit(rowsToRead(page)),
  )
  const { items, next } = cutPage(rows, page)
  const { run } = batch
  return { batch: { ...presentBatch(batch), ...(run && { run }) }, payouts: { items: items.map(presentPayout), next } }
}

/**
 * Closes a batch to instructions: the batch and its payouts become `ready` to be paid. Idempotent until the batch
 * starts. It starts, or is completed, at once if the ledger shows payouts of the draft as paid after a restore.
 * @throws Refusal `batch-not-found`; `batch-locked` once it has started
 */
export async function lockBatch({ db, employer, now }: EmployerContext, id: string): Promise<Batch> {
  if (!isId(id)) throw batchNotFound()
  return await transactFor(db, employer.organisation, async (tx) => {
    const [locked] = await tx
      .update(batches)
      .set({ status: 'ready' })
      .where(and(isOwnBatch(employer, id), inArray(batches.status, statusesBefore(BATCH_MOVES, 'ready'))))
      .returning(BATCH_COLUMNS)
    if (!locked) {
      const [batch] = await tx.select(BATCH_COLUMNS).from(batches).where(isOwnBatch(employer, id))
      if (!batch) throw batchNotFound()
      if (batch.status !== 'ready') throw new Refusal('batch-locked', `batch is ${batch.status}`)
      return presentBatch(batch)
    }
    const readied = await tx
      .update(payouts)
      .set({ status: 'ready' })
      .where(and(eq(payouts.batch, id), eq(payouts.status, 'draft')))
      .returning({ id: payouts.id })
    const entries = readied.map((payout) => ({ ...employer, action: 'payout.readied' as const, subject: payout.id }))
    await recordAudit(tx, now, { ...employer, action: 'batch.locked', subject: id }, ...entries)
    if (locked.settledCount === 0) return presentBatch(locked)
    // After a restore, a release has settled payouts of the draft: the batch has started, and may be completed.
    await countPayouts(
      tx,
      [{ ...locked, organisation: employer.organisation }],
      { sending: true },
      { ...employer, now },
    )
    const [started = locked] = await tx.select(BATCH_COLUMNS).from(batches).where(isOwnBatch(employer, id))
    return presentBatch(started)
  })
}

/** A batch leaves these statuses when its first payout is sent, and returns to them only by a restore. */
const isUnsent = (status: BatchStatus) => status === 'draft' || status === 'ready'

/**
 * Deletes a batch and its payouts, provided that none was ever sent and no run was ever started.
 * @throws Refusal `batch-not-found`; `batch-sent`, `batch-run`
 */
export async function removeBatch({ db, employer, now }: EmployerContext, id: string): Promise<{ id: string }> {
  if (!isId(id)) throw batchNotFound()
  return await transactFor(db, employer.organisation, async (tx) => {
    // While this lock is held, no transfer can claim a payout of the batch.
    const [batch] = await lockBatches(tx, isOwnBatch(employer, id))
    if (!batch) throw batchNotFound()
    // A canceled payout with a hash was paid before it was canceled, as a restore has shown.
    const isSettled = and(eq(payouts.batch, id), or(eq(payouts.status, 'paid'), isNotNull(payouts.txHash)))
    if (!isUnsent(batch.status) || (await tx.$count(payouts, isSettled)) > 0) throw new Refusal('batch-sent')
    if ((await tx.$count(relayJobs, eq(relayJobs.batch, id))) > 0) throw new Refusal('batch-run')
    const deleted = await tx.delete(payouts).where(eq(payouts.batch, id)).returning({ id: payouts.id })
    await tx.delete(batches).where(eq(batches.id, id))
    const detail = { payouts: deleted.length }
    await recordAudit(tx, now, { ...employer, action: 'batch.removed', subject: id, detail })
    return { id }
  })
}

/** The condition for the batch `id` of this employer. */
export const isOwnBatch = ({ organisation }: Employer, id: string) =>
  and(eq(batches.id, id), eq(batches.organisation, organisation))

export const batchNotFound = () => new Refusal('batch-not-found')
