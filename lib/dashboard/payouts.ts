import { and, asc, count, eq, gt, inArray, or, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, PAYOUT_STATUSES, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { newestFirst, readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { isId } from '#lib/directory/ids.ts'
import { explainTransfer } from './explanation.ts'
import {
  countsOf,
  type Filters,
  type List,
  type ListRequest,
  ofOrganisation,
  PART_SIZE,
  type Read,
  readPage,
} from './list.ts'
import {
  envelopeRows,
  firstInnerHash,
  outcomeOf,
  paysPayout,
  type TransferState,
  transferRows,
} from './transfer-rows.ts'

const COLUMNS = {
  id: payouts.id,
  sequence: payouts.sequence,
  organisation: organisations.name,
  organisationId: organisations.id,
  batch: batches.name,
  batchId: batches.id,
  contractor: contractors.name,
  contractorId: contractors.id,
  status: payouts.status,
  address: payouts.address,
  innerHash: firstInnerHash,
  error: payouts.error,
  createdAt: payouts.createdAt,
  paidAt: payouts.paidAt,
  transferId: transferRows.id,
  sentAt: transferRows.createdAt,
  ledgerHash: transferRows.hash,
  outcome: outcomeOf,
}

/** A payout. Its sealed amount is not queried. */
export type PayoutLine = Omit<
  Read<typeof payouts.$inferSelect, typeof COLUMNS>,
  'batch' | 'contractor' | 'organisation'
> & {
  organisation: string
  organisationId: string
  batch: string
  batchId: string
  contractor: string
  contractorId: string
  /** the hash of the signed inner transaction, and of the applied one; null until then */
  innerHash: string | null
  ledgerHash: string | null
  /** the last transfer that claimed it */
  transferId: string | null
  transfer: { status: TransferState; createdAt: Date } | null
  /** an explanation of the error; may be empty */
  meaning: string
}

export interface PayoutRequest extends ListRequest {
  /** id of a batch; '' for all */
  batch: string
}

/** Lists payouts in the order of their instructions. */
export async function listPayouts(db: Database, request: PayoutRequest): Promise<List<PayoutLine>> {
  const { within, shown, status } = conditionsOf(db, request)
  const counted = await db
    .select({ value: payouts.status, count: count() })
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(within)
    .groupBy(payouts.status)
  return await readPage(countsOf(counted), { ...request, status: status ?? '' }, async ({ limit, offset }) => {
    const rows = await selectPayouts(db, shown).limit(limit).offset(offset)
    return rows.map(presentPayout)
  })
}

/** Reads the payouts that match the filters, in the order of their instructions, in parts of at most `size`. */
export function readPayouts(db: Database, filters: Filters<PayoutRequest>, size = PART_SIZE) {
  const { shown } = conditionsOf(db, filters)
  const read = async (last: PayoutLine | undefined) => {
    const rows = await selectPayouts(db, and(shown, last && gt(payouts.sequence, last.sequence))).limit(size)
    return rows.map(presentPayout)
  }
  return readInParts(read, size)
}

/** Finds the newest payouts that match a condition, newest first. */
export async function findPayoutLines(db: Database, condition: SQL, limit: number): Promise<PayoutLine[]> {
  const rows = await selectPayouts(db, condition, newestFirst(payouts)).limit(limit)
  return rows.map(presentPayout)
}

function selectPayouts(db: Database, condition: SQL | undefined, order: readonly SQL[] = [asc(payouts.sequence)]) {
  return db
    .select(COLUMNS)
    .from(payouts)
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .innerJoin(organisations, eq(organisations.id, payouts.organisation))
    .leftJoin(transferRows, paysPayout)
    .where(condition)
    .orderBy(...order)
}

function presentPayout({ outcome, sentAt, ...line }: Awaited<ReturnType<typeof selectPayouts>>[number]): PayoutLine {
  return {
    ...line,
    transfer: outcome && sentAt && { status: outcome.status, createdAt: sentAt },
    meaning: line.status === 'failed' && outcome ? explainTransfer(outcome) : '',
  }
}

/** The conditions of a list: with its status (`shown`) and without it (`within`). */
function conditionsOf(db: Database, { q, status: name, batch, organisation }: Filters<PayoutRequest>) {
  const status = PAYOUT_STATUSES.find((one) => one === name)
  const signed = db
    .select({ transfer: envelopeRows.transfer })
    .from(envelopeRows)
    .where(contains(q, envelopeRows.innerHash, envelopeRows.outerHash))
  const own = contains(q, contractors.name, contractors.email, payouts.address, payouts.txHash)
  const within = and(
    batch === '' ? undefined : isId(batch) ? eq(payouts.batch, batch) : sql`false`,
    ofOrganisation(payouts.organisation, organisation),
    own && or(own, inArray(payouts.transfer, signed)),
  )
  return { status, within, shown: and(within, status && eq(payouts.status, status)) }
}
