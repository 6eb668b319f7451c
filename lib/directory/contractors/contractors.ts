import { and, eq, isNull, or, type SQL } from 'drizzle-orm'
import type { z } from 'zod'
import { CONTRACTOR_STATUSES, contractors } from '#drizzle/schema/directory.ts'
import { type Page, pageRequest } from '#lib/db/paging.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { isId } from '../ids.ts'
import { contains, listQuery, openList } from '../lists.ts'
import { type Employer, type EmployerContext, requireEmployer, type User, type UserContext } from '../user.ts'
import { activateBeforeReading } from './activation.ts'
import type { LedgerContext } from './registration.ts'
import { CONTRACTOR_COLUMNS, type Contractor, presentContractor } from './schema.ts'

/** The query of GET /contractors. */
export const contractorsQuery = listQuery(CONTRACTOR_STATUSES, 'name, email or address')

const LIST = openList(contractors, { ...CONTRACTOR_COLUMNS, sequence: contractors.sequence }, (organisation) =>
  and(eq(contractors.organisation, organisation), isNull(contractors.deletedAt)),
)

/** The contractors of an employer, newest first. Those that have registered since the last read are activated first. */
export async function listContractors(
  context: EmployerContext & LedgerContext,
  query: z.output<typeof contractorsQuery>,
): Promise<Page<Contractor>> {
  const { organisation } = context.employer
  await activateBeforeReading(context, { organisation })
  const { status, q } = query
  const filter = and(
    status && eq(contractors.status, status),
    contains(q, [contractors.name, contractors.email, contractors.address]),
  )
  const asked = { filter, page: pageRequest(query), counter: 'contractorCount' as const }
  const { items, ...page } = await LIST.readCounted(context.db, organisation, asked)
  return { items: items.map(presentContractor), ...page }
}

/**
 * The contractor `id`, for its employer or for the user who is linked to it.
 * @throws Refusal `contractor-not-found`; `employer-required` for a user who is neither an employer nor this contractor
 */
export async function findContractor(context: UserContext & LedgerContext, id: string): Promise<Contractor> {
  const find = async () => {
    const columns = { ...CONTRACTOR_COLUMNS, organisation: contractors.organisation }
    const [row] = await context.db.select(columns).from(contractors).where(visibleTo(context.user, id))
    if (!row) throw contractorNotFound()
    return row
  }
  const row = await find()
  const { organisation, address, status } = row
  if (address === null || (status !== 'invited' && status !== 'onboarding')) return presentContractor(row)
  await activateBeforeReading(context, { organisation, contractor: id })
  return presentContractor(await find())
}

/**
 * Requires an employer, or a user to whom the record `id` is linked. An employer passes whether or not the record
 * exists.
 * @throws Refusal `employer-required`
 */
export function requireAccess(user: User, id: string): void {
  if (!user.records.some((record) => record.id === id)) requireEmployer(user)
}

/**
 * The condition for the record `id`, if `user` may see it. It tests the link in the database again: a body may take
 * minutes to arrive, and a user who is no longer linked by then must not change the address.
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
