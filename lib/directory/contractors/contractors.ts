import { and, count, eq, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { z } from 'zod'
import { CONTRACTOR_STATUSES, contractors, organisations } from '#drizzle/schema/directory.ts'
import { type Database, violatedConstraint } from '#lib/db/connection.ts'
import { preparedOnce } from '#lib/db/prepared.ts'
import { rowsOf } from '#lib/db/rows.ts'
import { afterPosition, cutPage, newestFirst, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { isId } from '../ids.ts'
import { contains, listQuery } from '../list-filters.ts'
import { asDissolved } from '../organisations.ts'
import { type Employer, requireEmployer, type User } from '../user.ts'
import { activateBeforeReading } from './activation.ts'
import type { ConfidentialAccounts } from './registration.ts'
import type { Contractor } from './schema.ts'

export const CONTRACTOR_COLUMNS = {
  id: contractors.id,
  name: contractors.name,
  status: contractors.status,
  createdAt: contractors.createdAt,
  email: contractors.email,
  address: contractors.address,
  pvk: contractors.pvk,
  rateAmount: contractors.rateAmount,
  rateCurrency: contractors.rateCurrency,
  lastPaidAt: contractors.lastPaidAt,
}

type ContractorRow = Pick<typeof contractors.$inferSelect, keyof typeof CONTRACTOR_COLUMNS>

/** The query of GET /contractors. */
export const contractorsQuery = listQuery(CONTRACTOR_STATUSES, 'name, email or address')
type ContractorFilters = Pick<z.output<typeof contractorsQuery>, 'status' | 'q'>

/** What reading contractors takes: a read also activates. */
export interface ReadContext {
  db: Database
  accounts: ConfidentialAccounts
  now: Date
}

/** The contractors of an employer, newest first. Who waits and has registered meanwhile is ready. */
export async function listContractors(
  { db, accounts, now }: ReadContext,
  { organisation }: Employer,
  { status, q }: ContractorFilters,
  page: PageRequest,
): Promise<Page<Contractor>> {
  await activateBeforeReading(db, accounts, organisation, now)
  const isListed = and(
    eq(contractors.organisation, organisation),
    isNull(contractors.deletedAt),
    status && eq(contractors.status, status),
    contains(q, [contractors.name, contractors.email, contractors.address]),
  )
  const query = db
    .select(LISTED)
    .from(contractors)
    .where(and(isListed, afterPosition(contractors, page)))
    .orderBy(...newestFirst(contractors))
    .limit(rowsToRead(page))
  const { items, next } = cutPage(await rowsOf(db, LISTED, query).execute(organisation), page)
  const list = { items: items.map(presentContractor), next }
  if (!page.counts) return list
  if (!page.after && !next) return { ...list, total: items.length }
  const isFiltered = status !== undefined || q !== undefined
  const [counted] = isFiltered
    ? await db.select({ total: count() }).from(contractors).where(isListed)
    : await countOf(db).execute({ organisation })
  return { ...list, ...counted }
}

const LISTED = { ...CONTRACTOR_COLUMNS, sequence: contractors.sequence }

const countOf = preparedOnce((db) =>
  db
    .select({ total: organisations.contractorCount })
    .from(organisations)
    .where(eq(organisations.id, sql.placeholder('organisation')))
    .prepare('count_contractors'),
)

/**
 * The contractor `id`, for its employer and for the user that it is.
 * @throws Refusal `contractor-not-found`; `employer-required` for a user who is neither an employer nor this contractor
 */
export async function findContractor({ db, accounts, now }: ReadContext, user: User, id: string): Promise<Contractor> {
  const find = async () => {
    const columns = { ...CONTRACTOR_COLUMNS, organisation: contractors.organisation }
    const [row] = await db.select(columns).from(contractors).where(visibleTo(user, id))
    if (!row) throw contractorNotFound()
    return row
  }
  const row = await find()
  if (row.address === null || (row.status !== 'invited' && row.status !== 'onboarding')) return presentContractor(row)
  await activateBeforeReading(db, accounts, row.organisation, now, id)
  return presentContractor(await find())
}

/**
 * Whether `user` has anything to do with contractors: as an employer, or with `id` as its own record. It says nothing of
 * whether the record is there.
 * @throws Refusal `employer-required`
 */
export function requireAccess(user: User, id: string): void {
  if (!user.records.some((record) => record.id === id)) requireEmployer(user)
}

/**
 * The condition for the record `id`, if `user` may see it. Whether it is the user's own is asked of the record as it is
 * now: a body may take minutes to come, and a user who is no longer linked by then must not move the address.
 */
export function visibleTo(user: User, id: string): SQL | undefined {
  requireAccess(user, id)
  if (!isId(id)) throw contractorNotFound()
  const { kind, sub } = user.identity
  const isOwn = and(eq(contractors.linkedKind, kind), eq(contractors.linkedSub, sub))
  return and(
    eq(contractors.id, id),
    isNull(contractors.deletedAt),
    or(user.organisation && eq(contractors.organisation, user.organisation.id), isOwn),
  )
}

/** The condition for the record `id`, if it is the employer's. */
export function ownContractor({ organisation }: Employer, id: string): SQL | undefined {
  if (!isId(id)) throw contractorNotFound()
  return and(eq(contractors.id, id), eq(contractors.organisation, organisation), isNull(contractors.deletedAt))
}

export function contractorNotFound(): Refusal {
  return new Refusal('contractor-not-found', 'contractor not found')
}

export function presentContractor(row: ContractorRow): Contractor {
  const { email, address, pvk, rateAmount, rateCurrency, lastPaidAt } = row
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    createdAt: row.createdAt.toISOString(),
    ...(email !== null && { email }),
    ...(address !== null && { address }),
    ...(pvk !== null && { pvk }),
    ...(rateAmount !== null && rateCurrency !== null && { rate: { amount: rateAmount, currency: rateCurrency } }),
    ...(lastPaidAt !== null && { lastPaidAt: lastPaidAt.toISOString() }),
  }
}

export const SAME_EMAIL = 'another contractor has this email'
export const SAME_ADDRESS = 'another contractor has this address'

/**
 * What a failed write says to the caller: of two contractors with one email or address the second is a conflict, and so
 * is one for an organisation that was dissolved a moment ago.
 */
export function asConflict(error: unknown): unknown {
  const constraint = violatedConstraint(error)
  if (constraint === 'contractors_unique_email') return new Refusal('email-taken', SAME_EMAIL)
  if (constraint === 'contractors_unique_address') return new Refusal('address-taken', SAME_ADDRESS)
  return asDissolved(error)
}
