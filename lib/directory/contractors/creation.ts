import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor, violatedConstraint } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { foldEmail } from '#lib/text/email.ts'
import type { EmployerContext } from '../context.ts'
import { refuseDissolved, requireMember } from '../organisations.ts'
import type { Employer } from '../users.ts'
import { inviteExpiry } from './invite-token.ts'
import { findViewingKeys, type ViewingKeys } from './registration.ts'
import { CONTRACTOR_COLUMNS, type Contractor, type NewContractor, presentContractor } from './schema.ts'

/** The maximum number of contractors of an organisation. */
const CAPACITY = 50_000

/** Why a contractor cannot be added, as the message of a refusal or of an import's row. */
export const FULL = 'an organisation has at most 50,000 contractors; remove some first'
export const SAME_EMAIL = 'another contractor has this email'
export const SAME_ADDRESS = 'another contractor has this address'

/**
 * Creates a contractor: `ready` if its address is registered with the confidential token, else `invited`. It is also
 * `invited` while the ledger cannot be reached.
 * @throws Refusal `email-taken`, `address-taken`, `contractors-full`, `organisation-dissolved`
 */
export async function createContractor(
  { db, accounts, employer, now }: EmployerContext,
  input: NewContractor,
): Promise<Contractor> {
  const viewingKeys = await findViewingKeys(accounts, [input.address])
  const creating = transactFor(db, employer.organisation, async (tx) => {
    if ((await remainingCapacity(tx, employer)) === 0) throw new Refusal('contractors-full', FULL)
    const [row] = await tx
      .insert(contractors)
      .values(contractorRowOf(employer, input, viewingKeys, now))
      .returning(CONTRACTOR_COLUMNS)
    if (!row) throw new Error('the insert returned no row')
    await recordAudit(tx, now, creationEntry(employer, row))
    return presentContractor(row)
  })
  return await creating.catch(refuseConflict)
}

/**
 * Returns how many more contractors an organisation may have. Locks the organisation, so that concurrent requests
 * cannot exceed the capacity together.
 * @throws Refusal `organisation-dissolved`
 */
export async function remainingCapacity(tx: Database, employer: Employer): Promise<number> {
  const [organisation] = await tx
    .select({ contractors: organisations.contractorCount })
    .from(organisations)
    .where(eq(organisations.id, employer.organisation))
    .for('no key update')
  await requireMember(tx, employer)
  return Math.max(0, CAPACITY - (organisation?.contractors ?? 0))
}

/** A new contractor's invite is immediately open to a user who signs in with its email or address. */
export function contractorRowOf(
  { organisation }: Employer,
  { name, email, address, rate }: NewContractor,
  viewingKeys: ViewingKeys,
  now: Date,
) {
  const pvk = viewingKeys.get(address ?? '')
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
    inviteExpiresAt: inviteExpiry(now),
    createdAt: now,
  }
}

/** The audit log's entry for a new contractor. */
export function creationEntry(employer: Employer, { id, status }: Pick<Contractor, 'id' | 'status'>) {
  return { ...employer, action: 'contractor.created', subject: id, detail: { status } } as const
}

/**
 * Throws the refusal for a write that violated a unique constraint or whose organisation was dissolved, else `error`.
 */
export function refuseConflict(error: unknown): never {
  const constraint = violatedConstraint(error)
  if (constraint === 'contractors_unique_email') throw new Refusal('email-taken', SAME_EMAIL)
  if (constraint === 'contractors_unique_address') throw new Refusal('address-taken', SAME_ADDRESS)
  return refuseDissolved(error)
}
