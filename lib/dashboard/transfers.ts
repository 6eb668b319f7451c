import { and, count, eq, inArray, isNull, or, type SQL, sql } from 'drizzle-orm'
import { type AnyPgColumn, union } from 'drizzle-orm/pg-core'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { newestFirst } from '#lib/db/paging.ts'
import { isId } from '#lib/directory/ids.ts'
import { type List, type ListRequest, ofOrganisation, type Read, readPage } from './list.ts'
import { containing, type Sought, wholeNameOf } from './search.ts'
import {
  endedEarly,
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
  innerHash: firstInnerHash,
  outerHash: firstOuterHash,
  ledgerHash: transferRows.hash,
  account: transferRows.account,
  recipient: transferRows.recipient,
  quotaAccount: transferRows.quotaAccount,
  status: transferRows.status,
  resultCode: transferRows.resultCode,
  contractError: transferRows.contractError,
  refusalCode,
  endedEarly,
  bid: transferRows.bid,
  feeCharged: transferRows.feeCharged,
  ledger: transferRows.ledger,
  createdAt: transferRows.createdAt,
  settledAt: transferRows.settledAt,
  sequence: transferRows.sequence,
  organisation: transferRows.organisation,
  organisationName: organisations.name,
  batch: batches.id,
  batchName: batches.name,
}

/** A transfer that the sponsor agreed to pay for: hashes in hex, fees in stroops. */
export interface TransferLine extends Read<typeof transferRows.$inferSelect, typeof COLUMNS> {
  innerHash: string
  outerHash: string
  ledgerHash: string | null
  refusalCode: string | null
  endedEarly: boolean
  organisationName: string | null
  /** the batch of the payout that it pays; null where it pays none */
  batch: string | null
  batchName: string | null
  contractor: string | null
  contractorName: string | null
  /** the relay's job that it belongs to */
  job: string | null
}

export interface TransferRequest extends Omit<ListRequest, 'status'> {
  view: TransferView | ''
  /** id of a contractor whom it pays */
  contractor: string
  /** the faucet's account, whose deposits are not listed, but found by a search */
  faucet?: string | undefined
}

/** The transfers that the sponsor has agreed to pay for, of all organisations, newest first. */
export async function listTransfers(db: Database, request: TransferRequest): Promise<List<TransferLine>> {
  const { view, page } = request
  const within = filtered(db, request)
  const sought = wholeNameOf(request.q)
  const counts = await countViews(db, and(within, sought ? named(db, sought) : containingText(db, request.q)))
  return await readPage(counts, { status: view, page }, async ({ limit, offset }) => {
    const shown = and(ofView(view), within)
    const payee = payeeOf(db)
    const rows = await db
      .select({ ...COLUMNS, contractor: payee.id, contractorName: payee.name })
      .from(transferRows)
      .leftJoin(organisations, eq(organisations.id, transferRows.organisation))
      .leftJoin(payouts, eq(payouts.id, transferRows.payout))
      .leftJoin(batches, eq(batches.id, payouts.batch))
      .leftJoinLateral(payee, sql`true`)
      .where(sought ? firstNamed(db, sought, shown, limit + offset) : and(shown, containingText(db, request.q)))
      .orderBy(...newestFirst(transferRows))
      .limit(limit)
      .offset(offset)
    const jobs = await findJobs(
      db,
      rows.map(({ innerHash }) => innerHash),
    )
    return rows.map((row) => ({ ...row, job: jobs.get(row.innerHash) ?? null }))
  })
}

/**
 * The payee of a transfer: the contractor of its payout, or without a payout (as for the relay's) the organisation's
 * contractor with that address.
 */
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

/** How many transfers each view has; '' is all of them. */
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

function filtered(db: Database, { organisation, contractor, faucet, q }: TransferRequest): SQL | undefined {
  return and(
    q.trim() === '' ? notOfFaucet(faucet) : undefined,
    ofOrganisation(transferRows.organisation, organisation),
    contractor === '' ? undefined : isId(contractor) ? paying(db, eq(contractors.id, contractor)) : sql`false`,
  )
}

/**
 * The condition that a transfer pays one of these contractors: a payout of theirs, or without a payout their address,
 * which a deleted contractor no longer has.
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

/** A part of a hash, of an address, of the name of a batch, or of the name or email of the contractor that is paid. */
function containingText(db: Database, q: string): SQL | undefined {
  const { id, account, recipient, quotaAccount } = transferRows
  const signed = db
    .select({ transfer: envelopeRows.transfer })
    .from(envelopeRows)
    .where(containing(q, envelopeRows.innerHash, envelopeRows.outerHash))
  const ofBatch = db
    .select({ id: payouts.id })
    .from(payouts)
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .where(containing(q, batches.name))
  const own = containing(q, account, recipient, quotaAccount)
  const paid = paying(db, containing(q, contractors.name, contractors.email))
  return own && or(own, paid, inArray(id, signed), inArray(transferRows.payout, ofBatch))
}

function named(db: Database, sought: Sought): SQL | undefined {
  const { account, recipient, quotaAccount } = transferRows
  if ('hash' in sought) return hasHash(db, sought.hash)
  return or(eq(account, sought.account), eq(recipient, sought.account), eq(quotaAccount, sought.account))
}

/** An inner or an outer hash of what was signed; the ledger's own is one of them. */
function hasHash(db: Database, hash: string): SQL | undefined {
  const { innerHash, outerHash, transfer } = envelopeRows
  const signed = db
    .select({ transfer })
    .from(envelopeRows)
    .where(or(eq(innerHash, hash), eq(outerHash, hash)))
  return inArray(transferRows.id, signed)
}

/**
 * An account can be sender, recipient or payer of the quota. The newest of each are read by an index of their own; the
 * page is among them.
 */
function firstNamed(db: Database, sought: Sought, within: SQL | undefined, most: number): SQL | undefined {
  if ('hash' in sought) return and(hasHash(db, sought.hash), within)
  const { account, recipient, quotaAccount, id } = transferRows
  const having = (part: AnyPgColumn) =>
    db
      .select({ id })
      .from(transferRows)
      .where(and(eq(part, sought.account), within))
      .orderBy(...newestFirst(transferRows))
      .limit(most)
  return inArray(id, union(having(account), having(recipient), having(quotaAccount)))
}

/** The jobs of the relay that transfers belong to, by inner hash. */
async function findJobs(db: Database, innerHashes: readonly string[]): Promise<Map<string, string>> {
  if (innerHashes.length === 0) return new Map()
  const rows = await db
    .select({ innerHash: batchItems.innerHash, job: batchItems.job })
    .from(batchItems)
    .where(inArray(batchItems.innerHash, innerHashes))
  return new Map(rows.map(({ innerHash, job }) => [innerHash ?? '', job]))
}
