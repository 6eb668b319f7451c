import { and, eq, inArray, or, type SQL } from 'drizzle-orm'
import { batches, payouts } from '#drizzle/directory-schema.ts'
import { sponsoredTransfers, TRANSFER_STATUSES, type TransferStatus } from '#drizzle/schema.ts'
import type { Database } from '#lib/db.ts'
import { afterPosition, cutPage, newestFirst, type Page, type PageRequest, rowsToRead } from '#lib/paging.ts'

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
}

/** A line of the sponsor's ledger: hashes in hex, fees in stroops. */
export type TransferLine = Pick<
  typeof sponsoredTransfers.$inferSelect,
  Exclude<keyof typeof COLUMNS, 'batch' | 'batchName'>
> & { batch: string | null; batchName: string | null }

export interface TransferFilters {
  view: TransferView
  /** an account, or a hash, inner or outer; anything else finds nothing */
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
    .where(and(ofView(view), search === '' ? undefined : found(search), afterPosition(sponsoredTransfers, page)))
    .orderBy(...newestFirst(sponsoredTransfers))
    .limit(rowsToRead(page))
  return cutPage(rows, page)
}

function ofView(view: TransferView): SQL | undefined {
  const statuses = TRANSFER_VIEWS[view]
  const [only] = statuses
  if (view === 'all') return undefined
  return statuses.length === 1 ? eq(sponsoredTransfers.status, only) : inArray(sponsoredTransfers.status, statuses)
}

function found(search: string): SQL | undefined {
  return /^[0-9a-f]{64}$/i.test(search)
    ? or(eq(sponsoredTransfers.innerHash, search.toLowerCase()), eq(sponsoredTransfers.outerHash, search.toLowerCase()))
    : eq(sponsoredTransfers.account, search)
}
