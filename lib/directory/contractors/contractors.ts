import { and, eq, isNull, or, type SQL } from 'drizzle-orm'
import type { z } from 'zod'
import { CONTRACTOR_STATUSES, contractors } from '#drizzle/schema/directory.ts'
import { type Page, pageRequest } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { EmployerContext, UserContext } from '../context.ts'
import { isId } from '../ids.ts'
import { defineList, listQuery } from '../lists.ts'
import { type Employer, requireEmployer, type User } from '../users.ts'
import { activateBeforeReading } from './activation.ts'
import { CONTRACTOR_COLUMNS, type Contractor, presentContractor } from './schema.ts'

/** The query of GET /contractors. */
export const contractorsQuery = listQuery(CONTRACTOR_STATUSES, 'name, email or address')

const LIST = defineList(contractors, { ...CONTRACTOR_COLUMNS, sequence: contractors.sequence }, (organisation) =>
  and(eq(contractors.organisation, organisation), isNull(contractors.deletedAt)),
)

/** Lists an employer's contractors, newest first. First activates contractors whose address is now registered. */
export async function listContractors(
  context: EmployerContext,
  query: z.output<typeof contractorsQuery>,
): Promise<Page<Contractor>> {
  const { organisation } = context.employer
  await activateBeforeReading(context, { organisation })
  const { status, q, externalId } = query
  const filter = and(
    status && eq(contractors.status, status),
    externalId === undefined ? undefined : eq(contractors.externalId, externalId),
    contains(q, contractors.name, contractors.email, contractors.address),
  )
  const { items, ...page } = await LIST.readPage(context.db, organisation, {
    filter,
    page: pageRequest(query),
    counter: 'contractorCount',
  })
  return { items: items.map(presentContractor), ...page }
}

/**
 * Returns a contractor to its employer, or to the user who is linked to it.
 * @throws Refusal `contractor-not-found`; `employer-required` for any other user without an organisation
 */
export async function findContractor(context: UserContext, id: string): Promise<Contractor> {
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
 * Requires an employer, or the user who is linked to the record `id`. Does not check that an employer has the record.
 * @throws Refusal `employer-required`
 */
export function requireAccess(user: User, id: string): void {
  if (!user.records.some((record) => record.id === id)) requireEmployer(user)
}

/**
 * The condition for the record `id`, if `user` may see it. Checks the link in the database again: a body can take
 * minutes to arrive, and a user who has been unlinked by then must not change the address.
 */
export function visibleTo(user: User, id: string): SQL | undefined {
  requireAccess(user, id)
  if (!isId(id)) throw contractorNotFound()
  const { linkedKind, linkedSub } = contractors
  const isLinked = or(...user.identities.map(({ kind, sub }) => and(eq(linkedKind, kind), eq(linkedSub, sub))))
  return and(
    eq(contractors.id, id),
    isNull(contractors.deletedAt),
    or(user.organisation && eq(contractors.organisation, user.organisation.id), isLinked),
  )
}

/** The condition for the employer's record `id`. */
export function ownContractor({ organisation }: Employer, id: string): SQL | undefined {
  if (!isId(id)) throw contractorNotFound()
  return and(eq(contractors.id, id), eq(contractors.organisation, organisation), isNull(contractors.deletedAt))
}

export function contractorNotFound(): Refusal {
  return new Refusal('contractor-not-found')
}
