import { randomUUID } from 'node:crypto'
import { contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { foldEmail } from '../email.ts'
import { inviteEnd } from '../invites/token.ts'
import { requireMember } from '../organisations.ts'
import type { Employer, EmployerContext } from '../user.ts'
import { FULL, roomFor } from './capacity.ts'
import { asConflict, CONTRACTOR_COLUMNS, presentContractor } from './contractors.ts'
import { type ConfidentialAccounts, findRegistrations, viewingKeyOf } from './registration.ts'
import type { Contractor, NewContractor } from './schema.ts'

/**
 * Makes a contractor, `ready` if the address is registered with the confidential token. While the ledger cannot be
 * asked it is `invited` all the same.
 * @throws Refusal `email-taken`, `address-taken`, `contractors-full`, `organisation-dissolved`
 */
export async function createContractor(
  { db, accounts, employer, now }: EmployerContext & { accounts: ConfidentialAccounts },
  given: NewContractor,
): Promise<Contractor> {
  const { address } = given
  const found = await findRegistrations(accounts, address === undefined ? [] : [address])
  const pvk = address === undefined ? undefined : viewingKeyOf(found.get(address))
  const adding = transactFor(db, employer.organisation, async (tx) => {
    if ((await roomFor(tx, employer.organisation)) === 0) throw new Refusal('contractors-full', FULL)
    await requireMember(tx, employer.organisation, employer.actor)
    const [row] = await tx
      .insert(contractors)
      .values(contractorRowOf(employer, given, pvk, now))
      .returning(CONTRACTOR_COLUMNS)
    if (!row) throw new Error('an insert returned nothing')
    await recordAudit(tx, now, creationOf(employer, row))
    return presentContractor(row)
  })
  return await adding.catch((error: unknown) => {
    throw asConflict(error)
  })
}

/** The row of a new contractor. Its invite stands from the start: who signs in with its email or address sees it. */
export function contractorRowOf(
  { organisation }: Employer,
  { name, email, address, rate }: NewContractor,
  pvk: string | undefined,
  now: Date,
) {
  return {
    id: randomUUID(),
    organisation,
    name,
    status: pvk === undefined ? ('invited' as const) : ('ready' as const),
    email: email ?? null,
    emailFolded: email === undefined ? null : foldEmail(email),
    address: address ?? null,
    pvk: pvk ?? null,
    rateAmount: rate?.amount ?? null,
    rateCurrency: rate?.currency ?? null,
    inviteExpiresAt: inviteEnd(now),
    createdAt: now,
  }
}

/** How the audit log tells of a new contractor. */
export function creationOf({ organisation, actor }: Employer, { id, status }: Pick<Contractor, 'id' | 'status'>) {
  return {
    organisation,
    actor,
    action: 'contractor.created',
    subject: { kind: 'contractor', id },
    detail: { status },
  } as const
}
