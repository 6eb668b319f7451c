import { and, count, eq, inArray, isNull, or, type SQL, sql } from 'drizzle-orm'
import { type AnyPgColumn, union } from 'drizzle-orm/pg-core'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { afterPosition, newestFirst, readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { isId } from '#lib/directory/ids.ts'
import { type Filters, type List, type ListRequest, ofOrganisation, PART_SIZE, type Read, readPage } from './list.ts'
import { type ExactSearch, exactSearch } from './search.ts'
import {
  envelopeRows,
  firstInnerHash,
  firstOuterHash,
  notOfFaucet,
  refusalCode,
  TRANSFER_VIEWS,
  type TransferView,
  transferRows,
} from './transfer-rows.ts'

const COLUMNS = {
  id: transferRows.id,
  innerHash: firstInnerHash,
  outerHash: firstOuterHash,
  ledgerHash: transferRows.hash,
  kind: transferRows.kind,
  account: transferRows.account,
  owner: transferRows.owner,
  recipient: transferRows.recipient,
  quotaAccount: transferRows.quotaAccount,
  status: transferRows.status,
  resultCode: transferRows.resultCode,
  contractError: transferRows.contractError,
  refusalCode,
  bid: transferRows.bid,
  feeCharged: transferRows.feeCharged,
  ledger: transferRows.ledger,
  createdAt: transferRows.createdAt,
  settledAt: transferRows.settledAt,
  sequence: transferRows.sequence,
  payout: transferRows.payout,
  organisation: transferRows.organisation,
  organisationName: organisations.name,
  batch: batches.id,
  batchName: batches.name,
}

/** A recorded transfer: hashes in hex, fees in stroops. */
export interface TransferLine extends Read<typeof transferRows.$inferSelect, typeof COLUMNS> {
  innerHash: string
  outerHash: string
  ledgerHash: string | null
  refusalCode: string | null
  organisationName: string | null
  /** the batch of its payout, if it has one */
  batch: string | null
  batchName: string | null
  contractor: string | null
  contractorName: string | null
  /** its relay job, if it has one */
  job: string | null
}

export interface TransferRequest extends Omit<ListRequest, 'status'> {
  view: TransferView | ''
  /** the id of its payee */
  contractor: string
  /** the faucet's account: its deposits are not listed, but a search finds them */
  faucet?: string | undefined
}

/** Lists the transfers of all organisations, newest first. */
export async function listTransfers(db: Database, request: TransferRequest): Promise<List<TransferLine>> {
  const { view, page } = request
  const within = filtered(db, request)
  const exact = exactSearch(request.q)
  const counts = await countViews(db, and(within, exact ? matchExactly(db, exact) : containingText(db, request.q)))
  return await readPage(counts, { status: view, page }, async ({ limit, offset }) => {
    const shown = and(ofView(view), within)
    const condition = exact ? newestOf(db, exact, shown, limit + offset) : and(shown, containingText(db, request.q))
    return await addJobs(db, await selectTransfers(db, condition).limit(limit).offset(offset))
  })
}

export async function findTransferLine(db: Database, id: string): Promise<TransferLine | undefined> {
  const [transfer] = await addJobs(db, await selectTransfers(db, eq(transferRows.id, id)))
  return transfer
}

/** The id of the transfer that a hash, inner or outer, belongs to. */
export async function findTransferOfHash(db: Database, hash: string): Promise<string | undefined> {
  const [transfer] = await db.select({ id: transferRows.id }).from(transferRows).where(hasHash(db, hash)).limit(1)
  return transfer?.id
}

/** Reads the transfers that match the filters, newest first, in parts of at most `size`. */
export function readTransfers(db: Database, filters: Filters<TransferRequest>, size = PART_SIZE) {
  const shown = and(ofView(filters.view), filtered(db, filters))
  const exact = exactSearch(filters.q)
  const read = async (last: TransferLine | undefined) => {
    const left = and(shown, afterPosition(transferRows, { after: last }))
    const condition = exact ? newestOf(db, exact, left, size) : and(left, containingText(db, filters.q))
    return await addJobs(db, await selectTransfers(db, condition).limit(size))
  }
  return readInParts(read, size)
}

function selectTransfers(db: Database, condition: SQL | undefined) {
  const payee = payeeOf(db)
  return db
    .select({ ...COLUMNS, contractor: payee.id, contractorName: payee.name })
    .from(transferRows)
    .leftJoin(organisations, eq(organisations.id, transferRows.organisation))
    .leftJoin(payouts, eq(payouts.id, transferRows.payout))
    .leftJoin(batches, eq(batches.id, payouts.batch))
    .leftJoinLateral(payee, sql`true`)
    .where(condition)
    .orderBy(...newestFirst(transferRows))
}

async function addJobs(db: Database, rows: Awaited<ReturnType<typeof selectTransfers>>): Promise<TransferLine[]> {
  const jobs = await findJobs(
    db,
    rows.map(({ innerHash }) => innerHash),
  )
  return rows.map((row) => ({ ...row, job: jobs.get(row.innerHash) ?? null }))
}

/** The payee of a transfer: the contractor of its payout, or without one the contractor with the recipient's address. */
function payeeOf(db: Database) {
  const { id, name, organisation, address, deletedAt } = contractors
  const isOwn = and(eq(organisation, transferRows.organisation), eq(address, transferRows.recipient))
  return db
    .select({ id, name })
    .from(contractors)
    .where(or(eq(id, payouts.contractor), and(isNull(transferRows.payout), isOwn, isNull(deletedAt))))
    .limit(1)
    .as('payee')
}

/** Counts the transfers of each view; '' counts all. */
async function countViews(db: Database, condition: SQL | undefined): Promise<Map<string, number>> {
  const rows = await db
    .select({ status: transferRows.status, count: count() })
    .from(transferRows)
    .where(condition)
    .groupBy(transferRows.status)
  const sumOf = (statuses: readonly string[] | undefined) =>
    rows.reduce((sum, row) => (statuses?.includes(row.status) === false ? sum : sum + row.count), 0)
  const views = Object.entries(TRANSFER_VIEWS).map(([view, statuses]) => [view, sumOf(statuses)] as const)
  return new Map([['', sumOf(undefined)], ...views])
}

function ofView(view: TransferView | ''): SQL | undefined {
  return view === '' ? undefined : inArray(transferRows.status, [...TRANSFER_VIEWS[view]])
}

function filtered(db: Database, { organisation, contractor, faucet, q }: Filters<TransferRequest>): SQL | undefined {
  return and(
    q === '' ? notOfFaucet(faucet) : undefined,
    ofOrganisation(transferRows.organisation, organisation),
    contractor === '' ? undefined : isId(contractor) ? paying(db, eq(contractors.id, contractor)) : sql`false`,
  )
}

/**
 * Matches transfers by payee: the contractor of their payout, or without one the contractor with the recipient's
 * address.
 */
function paying(db: Database, which: SQL | undefined): SQL | undefined {
  const paid = db
    .select({ id: payouts.id })
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(which)
  const { organisation, address, deletedAt } = contractors
  const owned = db
    .select({ organisation, address })
    .from(contractors)
    .where(and(which, isNull(deletedAt)))
  return or(
    inArray(transferRows.payout, paid),
    and(isNull(transferRows.payout), sql`(${transferRows.organisation}, ${transferRows.recipient}) in ${owned}`),
  )
}

/** Matches a part of a hash, an address, the batch's name, or the payee's name or email. */
function containingText(db: Database, q: string): SQL | undefined {
  const { id, account, recipient, quotaAccount } = transferRows
  const signed = db
    .select({ transfer: envelopeRows.transfer })
    .from(envelopeRows)
    .where(contains(q, envelopeRows.innerHash, envelopeRows.outerHash))
  const ofBatch = db
    .select({ id: payouts.id })
    .from(payouts)
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .where(contains(q, batches.name))
  const own = contains(q, account, recipient, quotaAccount)
  const paid = paying(db, contains(q, contractors.name, contractors.email))
  return own && or(own, paid, inArray(id, signed), inArray(transferRows.payout, ofBatch))
}

function matchExactly(db: Database, exact: ExactSearch): SQL | undefined {
  const { account, recipient, quotaAccount } = transferRows
  if ('hash' in exact) return hasHash(db, exact.hash)
  return or(eq(account, exact.account), eq(recipient, exact.account), eq(quotaAccount, exact.account))
}

/** Matches an inner or outer hash of any envelope; the applied hash is one of them. */
function hasHash(db: Database, hash: string): SQL | undefined {
  const { innerHash, outerHash, transfer } = envelopeRows
  const signed = db
    .select({ transfer })
    .from(envelopeRows)
    .where(or(eq(innerHash, hash), eq(outerHash, hash)))
  return inArray(transferRows.id, signed)
}

/**
 * Matches the newest transfers of an account as sender, recipient and payer of the quota, `most` of each: each role has
 * an index, and the page is a subset of them.
 */
function newestOf(db: Database, exact: ExactSearch, within: SQL | undefined, most: number): SQL | undefined {
  if ('hash' in exact) return and(hasHash(db, exact.hash), within)
  const { account, recipient, quotaAccount, id } = transferRows
  const having = (part: AnyPgColumn) =>
    db
      .select({ id })
      .from(transferRows)
      .where(and(eq(part, exact.account), within))
      .orderBy(...newestFirst(transferRows))
      .limit(most)
  return inArray(id, union(having(account), having(recipient), having(quotaAccount)))
}

/** Finds the relay jobs of transfers, by inner hash. */
async function findJobs(db: Database, innerHashes: readonly string[]): Promise<Map<string, string>> {
  if (innerHashes.length === 0) return new Map()
  const rows = await db
    .select({ innerHash: batchItems.innerHash, job: batchItems.job })
    .from(batchItems)
    .where(inArray(batchItems.innerHash, innerHashes))
  return new Map(rows.map(({ innerHash, job }) => [innerHash ?? '', job]))
}
