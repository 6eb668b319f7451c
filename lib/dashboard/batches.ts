import { and, asc, count, eq, inArray, or, type SQL, sql } from 'drizzle-orm'
import { BATCH_STATUSES, batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { newestFirst } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { BATCH_COLUMNS } from '#lib/directory/batches/batches.ts'
import { isId } from '#lib/directory/ids.ts'
import { explainTransfer } from './explanation.ts'
import { countsOf, type List, type ListRequest, ofOrganisation, type Read, readPage } from './list.ts'
import {
  envelopeRows,
  firstInnerHash,
  outcomeOf,
  paysPayout,
  type TransferState,
  transferRows,
} from './transfer-rows.ts'

/**
 * When a payout of the batch was last sent or settled; null for a completed batch, whose transfers are not queried.
 * Looks up each transfer by its key: a join would read the whole table for each batch.
 */
export const lastProgress =
  sql<Date | null>`case when ${batches.status} <> 'completed' then greatest(${batches.startedAt}, (
  select max((select greatest(${transferRows.createdAt}, ${transferRows.settledAt}) from ${transferRows} where ${paysPayout}))
  from ${payouts} where ${payouts.batch} = ${batches.id}
)) end`.mapWith(batches.createdAt)

const COLUMNS = {
  ...BATCH_COLUMNS,
  organisation: batches.organisation,
  organisationName: organisations.name,
  sequence: batches.sequence,
  progressedAt: lastProgress,
}

export type BatchLine = Read<typeof batches.$inferSelect, typeof COLUMNS> & {
  organisationName: string
  /** when it started or a payout last moved; null before that and once it is completed */
  progressedAt: Date | null
}

/** Lists the batches of all organisations, newest first. */
export async function listBatches(db: Database, request: ListRequest): Promise<List<BatchLine>> {
  const { q, organisation } = request
  const status = BATCH_STATUSES.find((name) => name === request.status)
  const within = and(ofOrganisation(batches.organisation, organisation), containingText(db, q))
  const counted = await db
    .select({ value: batches.status, count: count() })
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(within)
    .groupBy(batches.status)
  return await readPage(countsOf(counted), { ...request, status: status ?? '' }, ({ limit, offset }) =>
    selectBatches(db, and(within, status && eq(batches.status, status)))
      .orderBy(...newestFirst(batches))
      .limit(limit)
      .offset(offset),
  )
}

/** Matches a part of the batch's or organisation's name, or of the payee, address or hash of one of its payouts. */
function containingText(db: Database, q: string): SQL | undefined {
  const own = contains(q, batches.name, organisations.name, batches.id)
  const { name, email } = contractors
  const paying = db
    .select({ batch: payouts.batch })
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(contains(q, name, email, payouts.address, payouts.txHash))
  return own && or(own, inArray(batches.id, paying))
}

function selectBatches(db: Database, condition: SQL | undefined) {
  return db
    .select(COLUMNS)
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(condition)
}

/** Lists the batches in progress, longest without progress first, with their total number. */
export async function listMovingBatches(db: Database, limit: number): Promise<{ batches: BatchLine[]; total: number }> {
  const started = eq(batches.status, 'started')
  const [rows, [all]] = await Promise.all([
    selectBatches(db, started).orderBy(asc(lastProgress), asc(batches.sequence)).limit(limit),
    db.select({ count: count() }).from(batches).where(started),
  ])
  return { batches: rows, total: all?.count ?? 0 }
}

export async function findBatchLine(db: Database, id: string): Promise<BatchLine | undefined> {
  if (!isId(id)) return undefined
  const [batch] = await selectBatches(db, eq(batches.id, id))
  return batch
}

const PAYOUT_COLUMNS = {
  id: payouts.id,
  sequence: payouts.sequence,
  contractor: contractors.name,
  contractorId: contractors.id,
  status: payouts.status,
  address: payouts.address,
  innerHash: firstInnerHash,
  error: payouts.error,
  createdAt: payouts.createdAt,
  paidAt: payouts.paidAt,
  sentAt: transferRows.createdAt,
  ledgerHash: transferRows.hash,
  outcome: outcomeOf,
}

/** A payout of a batch. Its sealed amount is not queried. */
export type PayoutLine = Read<typeof payouts.$inferSelect, typeof PAYOUT_COLUMNS> & {
  /** the hash of the signed inner transaction, and of the applied one; null until then */
  innerHash: string | null
  ledgerHash: string | null
  contractor: string
  contractorId: string
  /** the last transfer that claimed it */
  transfer: { status: TransferState; createdAt: Date } | null
  /** an explanation of the error; may be empty */
  meaning: string
}

/** Lists the payouts of a batch, in the order of their instructions. */
export async function listPayoutsOf(db: Database, batch: string, request: ListRequest): Promise<List<PayoutLine>> {
  const { q, status } = request
  const signed = db
    .select({ transfer: envelopeRows.transfer })
    .from(envelopeRows)
    .where(contains(q, envelopeRows.innerHash, envelopeRows.outerHash))
  const own = contains(q, contractors.name, contractors.email, payouts.address, payouts.txHash)
  const within = and(eq(payouts.batch, batch), own && or(own, inArray(payouts.transfer, signed)))
  const ofContractor = eq(contractors.id, payouts.contractor)
  const counted = await db
    .select({ value: payouts.status, count: count() })
    .from(payouts)
    .innerJoin(contractors, ofContractor)
    .where(within)
    .groupBy(payouts.status)
  return await readPage(countsOf(counted), request, async ({ limit, offset }) => {
    const rows = await db
      .select(PAYOUT_COLUMNS)
      .from(payouts)
      .innerJoin(contractors, ofContractor)
      .leftJoin(transferRows, paysPayout)
      .where(and(within, status === '' ? undefined : sql`${payouts.status} = ${status}`))
      .orderBy(asc(payouts.sequence))
      .limit(limit)
      .offset(offset)
    return rows.map(({ outcome, sentAt, ...line }) => ({
      ...line,
      transfer: outcome && sentAt && { status: outcome.status, createdAt: sentAt },
      meaning: line.status === 'failed' && outcome ? explainTransfer(outcome) : '',
    }))
  })
}
