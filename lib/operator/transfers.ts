import { and, eq, inArray, ne, or, type SQL, sql } from 'drizzle-orm'
import { type AnyPgColumn, union } from 'drizzle-orm/pg-core'
import { batches, contractors, payouts } from '#drizzle/schema/directory.ts'
import { sponsoredTransfers, TRANSFER_STATUSES, type TransferStatus } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { afterPosition, cutPage, newestFirst, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'
import { soughtIn } from './search.ts'

/** The transfers that can be asked for at once, each with the statuses that belong to it. */
export const TRANSFER_VIEWS = {
  all: TRANSFER_STATUSES,
  open: ['held', 'sent'],
  settled: ['success'],
  failed: ['failed'],
  dead: ['dead'],
} as const satisfies Record<string, readonly TransferStatus[]>
export type TransferView = keyof typeof TRANSFER_VIEWS

const COLUMNS = {
  innerHash: sponsoredTransfers.innerHash,
  outerHash: sponsoredTransfers.outerHash,
  ledgerHash: sponsoredTransfers.ledgerHash,
  account: sponsoredTransfers.account,
  recipient: sponsoredTransfers.recipient,
  quotaAccount: sponsoredTransfers.quotaAccount,
  status: sponsoredTransfers.status,
  resultCode: sponsoredTransfers.resultCode,
  contractError: sponsoredTransfers.contractError,
  bid: sponsoredTransfers.bid,
  feeCharged: sponsoredTransfers.feeCharged,
  ledger: sponsoredTransfers.ledger,
  createdAt: sponsoredTransfers.createdAt,
  settledAt: sponsoredTransfers.settledAt,
  sequence: sponsoredTransfers.sequence,
  batch: batches.id,
  batchName: batches.name,
  contractor: contractors.name,
}

/** A line of the sponsor's ledger: hashes in hex, fees in stroops. */
export type TransferLine = Pick<
  typeof sponsoredTransfers.$inferSelect,
  Exclude<keyof typeof COLUMNS, 'batch' | 'batchName' | 'contractor'>
> & {
  /** the batch of the payout that it pays, and whom that is for; null where it pays none */
  batch: string | null
  batchName: string | null
  contractor: string | null
}

export interface TransferFilters {
  view: TransferView
  /** an account that pays, is paid or is counted against, or a hash; empty for all, and anything else finds nothing */
  search: string
}

/** What the sponsor has agreed to pay for, of everybody, newest first. */
export async function listTransfers(
  db: Database,
  { view, search }: TransferFilters,
  page: PageRequest,
): Promise<Page<TransferLine>> {
  const rows = await db
    .select(COLUMNS)
    .from(sponsoredTransfers)
    .leftJoin(payouts, eq(payouts.id, sponsoredTransfers.payout))
    .leftJoin(batches, eq(batches.id, payouts.batch))
    .leftJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(search === '' ? within(view, page) : found(db, { view, search }, page))
    .orderBy(...newestFirst(sponsoredTransfers))
    .limit(rowsToRead(page))
  return cutPage(rows, page)
}

/** The transfers of `view` that come after those of the pages before. */
function within(view: TransferView, page: PageRequest): SQL | undefined {
  return and(ofView(view), afterPosition(sponsoredTransfers, page))
}

function ofView(view: TransferView): SQL | undefined {
  const statuses = TRANSFER_VIEWS[view]
  const [only] = statuses
  if (view === 'all') return undefined
  return statuses.length === 1 ? eq(sponsoredTransfers.status, only) : inArray(sponsoredTransfers.status, statuses)
}

function found(db: Database, { view, search }: TransferFilters, page: PageRequest): SQL | undefined {
  const sought = soughtIn(search)
  if (!sought) return sql`false`
  return 'hash' in sought
    ? and(hasHash(sought.hash), within(view, page))
    : inArray(sponsoredTransfers.innerHash, ofAccount(db, sought.account, view, page))
}

/** The ledger's own hash is one of the other two, or else has an index of its own. */
function hasHash(hash: string): SQL | undefined {
  const { innerHash, outerHash, ledgerHash } = sponsoredTransfers
  const other = and(eq(ledgerHash, hash), ne(ledgerHash, innerHash), ne(ledgerHash, outerHash))
  return or(eq(innerHash, hash), eq(outerHash, hash), other)
}

/** Of each part that an account can have in a transfer a page, by the index of that part: among them is the page of all. */
function ofAccount(db: Database, sought: string, view: TransferView, page: PageRequest) {
  const { account, recipient, quotaAccount, innerHash } = sponsoredTransfers
  const having = (part: AnyPgColumn) =>
    db
      .select({ innerHash })
      .from(sponsoredTransfers)
      .where(and(eq(part, sought), within(view, page)))
      .orderBy(...newestFirst(sponsoredTransfers))
      .limit(rowsToRead(page))
  return union(having(account), having(recipient), having(quotaAccount))
}
