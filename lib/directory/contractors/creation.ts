import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { type ContractorStatus, contractors, organisations } from '#drizzle/schema/directory.ts'
import { type AuditEntry, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, violatedConstraint } from '#lib/db/connection.ts'
import { transactOnce } from '#lib/db/idempotency.ts'
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
export const TAKEN = {
  'external-id-taken': 'another contractor has this externalId',
  'email-taken': 'another contractor has this email',
  'address-taken': 'another contractor has this address',
  'contractors-full': 'an organisation has at most 50,000 contractors; remove some first',
} as const

/**
 * Creates a contractor: `ready` if its address is registered with the confidential token, else `invited`. It is also
 * `invited` while the ledger cannot be reached.
 * @throws Refusal `email-taken`, `address-taken`, `external-id-taken`, `contractors-full`, `organisation-dissolved`
 */
export async function createContractor(context: EmployerContext, input: NewContractor): Promise<Contractor> {
  const { accounts, employer, now } = context
  const viewingKeys = await findViewingKeys(accounts, [input.address])
  const create = async (tx: Database) => {
    if ((await remainingCapacity(tx, employer)) === 0) throw new Refusal('contractors-full', TAKEN['contractors-full'])
    const [row] = await tx
      .insert(contractors)
      .values(contractorRowOf(employer, input, viewingKeys, now))
      .returning(CONTRACTOR_COLUMNS)
    if (!row) throw new Error('the insert returned no row')
    await recordAudit(tx, now, ...creationEntries(employer, row))
    return presentContractor(row)
  }
  const creating = transactOnce(context, employer.organisation, { work: create, refer: ({ id }) => ({ ids: [id] }) })
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
  { name, email, address, rate, externalId }: NewContractor,
  viewingKeys: ViewingKeys,
  now: Date,
) {
  const pvk = viewingKeys.get(address ?? '')
  return {
    id: randomUUID(),
    organisation,
    externalId,
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

/** The audit log's entries for a new contractor. */
export function creationEntries(employer: Employer, { id, status }: Pick<Contractor, 'id' | 'status'>): AuditEntry[] {
  const created = { ...employer, action: 'contractor.created', subject: id, detail: { status } } as const
  return [created, ...readyEntries({ ...employer, id }, undefined, status)]
}

/** The audit log's entry for a contractor that has become `ready`, if it has. */
export function readyEntries(
  { organisation, actor, id }: Employer & { id: string },
  before: ContractorStatus | undefined,
  now: ContractorStatus,
): AuditEntry[] {
  return now === 'ready' && before !== 'ready'
    ? [{ organisation, actor, action: 'contractor.activated', subject: id }]
    : []
}

/**
 * Throws the refusal for a write that violated a unique constraint or whose organisation was dissolved, else `error`.
 */
export function refuseConflict(error: unknown): never {
  const constraint = violatedConstraint(error)
  if (constraint === 'contractors_unique_email') throw new Refusal('email-taken', TAKEN['email-taken'])
  if (constraint === 'contractors_unique_address') throw new Refusal('address-taken', TAKEN['address-taken'])
  if (constraint === 'contractors_unique_external_id')
    throw new Refusal('external-id-taken', TAKEN['external-id-taken'])
  return refuseDissolved(error)
}
