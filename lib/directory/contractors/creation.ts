import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor, violatedConstraint } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { foldEmail } from '#lib/text/plain-text.ts'
import { inviteEnd } from '../invites/token.ts'
import { refuseDissolved, requireMember } from '../organisations.ts'
import type { Employer, EmployerContext } from '../user.ts'
import { findViewingKeys, type LedgerContext, type ViewingKeys } from './registration.ts'
import { CONTRACTOR_COLUMNS, type Contractor, type NewContractor, presentContractor } from './schema.ts'

/** How many contractors an organisation has at most. */
const CAPACITY = 50_000

/** Why a contractor cannot be added: messages for a refusal, and for a row of an import. */
export const FULL = 'an organisation has at most 50,000 contractors; remove some first'
export const SAME_EMAIL = 'another contractor has this email'
export const SAME_ADDRESS = 'another contractor has this address'

/**
 * Makes a contractor: `ready` if the address is registered with the confidential token, else `invited`. It is `invited`
 * also while the ledger cannot be asked.
 * @throws Refusal `email-taken`, `address-taken`, `contractors-full`, `organisation-dissolved`
 */
export async function createContractor(
  { db, accounts, employer, now }: EmployerContext & LedgerContext,
  given: NewContractor,
): Promise<Contractor> {
  const found = await findViewingKeys(accounts, [given.address])
  const adding = transactFor(db, employer.organisation, async (tx) => {
    if ((await roomFor(tx, employer)) === 0) throw new Refusal('contractors-full', FULL)
    const [row] = await tx
      .insert(contractors)
      .values(contractorRowOf(employer, given, found, now))
      .returning(CONTRACTOR_COLUMNS)
    if (!row) throw new Error('an insert returned nothing')
    await recordAudit(tx, now, creationOf(employer, row))
    return presentContractor(row)
  })
  return await adding.catch(refuseConflict)
}

/**
 * How many more contractors an organisation may have. Locks the organisation, so that simultaneous requests take turns
 * and cannot exceed the capacity together.
 * @throws Refusal `organisation-dissolved`
 */
export async function roomFor(tx: Database, employer: Employer): Promise<number> {
  const [there] = await tx
    .select({ contractors: organisations.contractorCount })
    .from(organisations)
    .where(eq(organisations.id, employer.organisation))
    .for('no key update')
  await requireMember(tx, employer)
  return Math.max(0, CAPACITY - (there?.contractors ?? 0))
}

/**
 * The row of a new contractor. Its invite is open from the start, for the user who signs in with its email or address.
 */
export function contractorRowOf(
  { organisation }: Employer,
  { name, email, address, rate }: NewContractor,
  found: ViewingKeys,
  now: Date,
) {
  const pvk = found.get(address ?? '')
  return {
    id: randomUUID(),
    organisation,
    name,
    status: pvk ? ('ready' as const) : ('invited' as const),
    email,
    emailFolded: email === undefined ? undefined : foldEmail(email),
    address,
    pvk,
    rateAmount: rate?.amount,
    rateCurrency: rate?.currency,
    inviteExpiresAt: inviteEnd(now),
    createdAt: now,
  }
}

/** The entry of the audit log for a new contractor. */
export function creationOf(employer: Employer, { id, status }: Pick<Contractor, 'id' | 'status'>) {
  return { ...employer, action: 'contractor.created', subject: id, detail: { status } } as const
}

/**
 * Turns a failed write into its refusal: another contractor has the email or the address, or the organisation was
 * dissolved a moment ago. Any other error is thrown again.
 */
export function refuseConflict(error: unknown): never {
  const constraint = violatedConstraint(error)
  if (constraint === 'contractors_unique_email') throw new Refusal('email-taken', SAME_EMAIL)
  if (constraint === 'contractors_unique_address') throw new Refusal('address-taken', SAME_ADDRESS)
  return refuseDissolved(error)
}
