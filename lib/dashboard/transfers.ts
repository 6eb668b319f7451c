import { and, eq, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo, MAX_COUNTED } from '#lib/db/count.ts'
import { byTime, type Order, orderedBy } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import {
  byStatus,
  type ListContext,
  onlyRow,
  type Part,
  type RecordList,
  type RowOf,
  readPart,
  type Source,
  withSum,
} from './list.ts'
import { REFUSED, type RefusalLine } from './refusals.ts'
import { matching, type ResolvedFilters, resolveBatch, TRANSFER_FILTERS } from './transfer-filters.ts'
import { firstInnerHash, firstOuterHash, refusalCode, TRANSFER_VIEWS, type TransferView } from './transfer-rows.ts'

const NEWEST = byTime(transfers)

/** The part of a list that its counts read. */
const COUNTED: Part = { beside: undefined, order: orderedBy(NEWEST), limit: MAX_COUNTED + 1 }

const VIEWS = Object.keys(TRANSFER_VIEWS) as TransferView[]

const TABS = { name: 'view', values: [...VIEWS, 'refused'] }

/** The transfers of all organisations. */
export const TRANSFERS: RecordList<typeof TRANSFER_FILTERS, TransferLine> = {
  filters: TRANSFER_FILTERS,
  tabs: TABS,
  match: async (context, filters) => {
    const resolved = await resolveBatch(context, filters)
    const source = filters.sort === 'fee' ? byFee(context.db, resolved) : sourceOf(context.db, resolved)
    return { ...source, count: () => countTabs(context, resolved) }
  },
}

/** The refused transfers, which are another tab of the same page. */
export const REFUSALS: RecordList<typeof REFUSED.filters, RefusalLine> = {
  filters: REFUSED.filters,
  tabs: TABS,
  match: async (context, filters) => ({
    ...(await REFUSED.match(context, filters)),
    count: async () => await countTabs(context, await resolveBatch(context, filters)),
  }),
}

async function countTabs(context: ListContext, filters: ResolvedFilters): Promise<Map<string, number>> {
  const { paid } = filters
  // Each paid payout has exactly one succeeded transfer.
  const views = paid === undefined ? VIEWS : VIEWS.filter((view) => view !== 'succeeded')
  const tabs = byStatus(views, (view) => matching(context.db, { ...filters, view }, COUNTED))
  const counts = await countUpTo(context.db, transfers, NEWEST, tabs)
  if (paid !== undefined) counts.set('succeeded', Math.min(paid, MAX_COUNTED + 1))
  const refused = await (await REFUSED.match(context, filters)).count()
  // The total does not include refused transfers.
  return withSum(counts).set('refused', refused.get('') ?? 0)
}

function sourceOf(db: Database, filters: ResolvedFilters): Source<TransferLine> {
  return {
    order: { ...NEWEST, ascending: filters.sort === 'oldest' },
    read: (part) => readPart(selectTransfers(db, matching(db, filters, part)), part),
    placeOf,
  }
}

/** The newest MAX_COUNTED transfers that match, sorted by the service's fee, highest first. */
function byFee(db: Database, filters: ResolvedFilters): Source<TransferLine> {
  const { id, feeCharged, sequence } = transfers
  const recent = db
    .select({ id, feeCharged, sequence })
    .from(transfers)
    .where(and(matching(db, filters, COUNTED), isNotNull(feeCharged)))
    .orderBy(...COUNTED.order)
    .limit(MAX_COUNTED)
    .as('recent')
  const order: Order = { lead: { column: recent.feeCharged, type: 'bigint' }, sequence: recent.sequence }
  return {
    order,
    read: async ({ beside, ...part }) => {
      const page = await readPart(db.select({ id: recent.id }).from(recent).where(beside), part)
      const ids = page.map((row) => row.id)
      const rows = ids.length === 0 ? [] : await selectTransfers(db, inArray(id, ids))
      return rows.toSorted((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id))
    },
    placeOf: ({ feeCharged: fee, sequence: number }) => [Number(fee), number],
  }
}

export const findTransferLine = (db: Database, id: string) => onlyRow(selectTransfers(db, eq(transfers.id, id)))

export const findTransferLines = (db: Database, ids: readonly string[]) =>
  selectTransfers(db, inArray(transfers.id, [...ids]))

/** The id of the transfer that a hash belongs to: inner or outer, of any envelope. The applied hash is one of them. */
export async function findTransferOfHash(db: Database, hash: string): Promise<string | undefined> {
  const { innerHash, outerHash, transfer } = envelopes
  const isSigned = or(eq(innerHash, hash), eq(outerHash, hash))
  return (await onlyRow(db.select({ transfer }).from(envelopes).where(isSigned).limit(1)))?.transfer
}

/** A recorded transfer: hashes in hex, fees in stroops. */
export type TransferLine = RowOf<typeof selectTransfers>

function selectTransfers(db: Database, condition: SQL | undefined) {
  const payee = payeeOf(db)
  return db
    .select({
      id: transfers.id,
      innerHash: firstInnerHash,
      outerHash: firstOuterHash,
      ledgerHash: transfers.hash,
      kind: transfers.kind,
      account: transfers.account,
      owner: transfers.owner,
      recipient: transfers.recipient,
      quotaAccount: transfers.quotaAccount,
      status: transfers.status,
      resultCode: transfers.resultCode,
      contractError: transfers.contractError,
      refusalCode,
      bid: transfers.bid,
      feeCharged: transfers.feeCharged,
      ledger: transfers.ledger,
      createdAt: transfers.createdAt,
      settledAt: transfers.settledAt,
      sequence: transfers.sequence,
      payout: transfers.payout,
      /** its relay job, if it has one */
      job: transfers.lineJob,
      organisation: transfers.organisation,
      organisationName: organisations.name,
      /** the batch of its payout, if it has one */
      batch: batches.id,
      batchName: batches.name,
      contractor: payee.id,
      contractorName: payee.name,
    })
    .from(transfers)
    .leftJoin(organisations, eq(organisations.id, transfers.organisation))
    .leftJoin(payouts, eq(payouts.id, transfers.payout))
    .leftJoin(batches, eq(batches.id, payouts.batch))
    .leftJoinLateral(payee, sql`true`)
    .where(condition)
}

/** The payee of a transfer: the contractor of its payout, or without one the contractor with the recipient's address. */
function payeeOf(db: Database) {
  const { id, name, organisation, address, deletedAt } = contractors
  const isOwn = and(eq(organisation, transfers.organisation), eq(address, transfers.recipient))
  return db
    .select({ id, name })
    .from(contractors)
    .where(or(eq(id, payouts.contractor), and(isNull(transfers.payout), isOwn, isNull(deletedAt))))
    .limit(1)
    .as('payee')
}
