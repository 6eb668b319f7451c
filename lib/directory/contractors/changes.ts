import { eq } from 'drizzle-orm'
import { type ContractorStatus, contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { foldEmail } from '#lib/text/email.ts'
import type { EmployerContext, UserContext } from '../context.ts'
import { cancelPayouts } from '../payouts/cancellation.ts'
import { actorOf, provenAccounts, type User } from '../users.ts'
import { contractorNotFound, ownContractor, visibleTo } from './contractors.ts'
import { readyEntries, refuseConflict } from './creation.ts'
import { findViewingKeys, type ViewingKeys } from './registration.ts'
import { CONTRACTOR_COLUMNS, type Contractor, type ContractorChanges, presentContractor } from './schema.ts'

/**
 * Changes some fields of a contractor. The employer may change all fields; the contractor may only change its own
 * address, to an account that it has proven to own. Deactivation cancels the contractor's `draft` and `ready` payouts.
 * @throws Refusal `contractor-not-found`; `employer-required` or `account-unproven` for a contractor; `email-taken`,
 *   `address-taken`, `external-id-taken`
 */
export async function changeContractor(
  { db, accounts, user, now }: UserContext,
  { id, changes }: { id: string; changes: ContractorChanges },
): Promise<Contractor> {
  const organisation = await requireVisible(db, user, id)
  const viewingKeys = await findViewingKeys(accounts, [changes.address])
  const actor = actorOf(user.identity)
  const changing = transactFor(db, organisation, async (tx) => {
    const [row] = await tx.select().from(contractors).where(visibleTo(user, id)).for('update')
    if (!row) throw contractorNotFound()
    const fields = fieldsOf(changes)
    if (row.organisation !== user.organisation?.id) requireOwnChange(user, row, changes)
    const values = { ...plainFields(row, changes), ...addressAndStatus(row, changes, viewingKeys) }
    const [changed] = await tx
      .update(contractors)
      .set(values)
      .where(eq(contractors.id, id))
      .returning(CONTRACTOR_COLUMNS)
    if (!changed) throw contractorNotFound()
    const entry = { organisation, actor, action: 'contractor.updated', subject: id } as const
    const ready = readyEntries({ organisation, actor, id }, row.status, changed.status)
    await recordAudit(tx, now, { ...entry, detail: { fields, status: changed.status } }, ...ready)
    if (changed.status === 'inactive') await cancelPayouts(tx, row, { actor, now })
    return presentContractor(changed)
  })
  return await changing.catch(refuseConflict)
}

/**
 * Hides a contractor from every list and lookup. Keeps its payouts, and cancels the `draft` and `ready` ones.
 * @throws Refusal `contractor-not-found`
 */
export async function removeContractor({ db, employer, now }: EmployerContext, id: string): Promise<{ id: string }> {
  return await transactFor(db, employer.organisation, async (tx) => {
    const [removed] = await tx
      .update(contractors)
      .set({ deletedAt: now })
      .where(ownContractor(employer, id))
      .returning({ id: contractors.id, organisation: contractors.organisation })
    if (!removed) throw contractorNotFound()
    await recordAudit(tx, now, { ...employer, action: 'contractor.removed', subject: id })
    await cancelPayouts(tx, removed, { actor: employer.actor, now })
    return { id }
  })
}

type Row = typeof contractors.$inferSelect

/**
 * Returns the organisation of a contractor that the user may see. Runs before the registration is looked up in the
 * ledger, which a user without access must not trigger.
 * @throws Refusal `contractor-not-found`, `employer-required`
 */
async function requireVisible(db: Database, user: User, id: string): Promise<string> {
  const columns = { organisation: contractors.organisation }
  const [row] = await db.select(columns).from(contractors).where(visibleTo(user, id))
  if (!row) throw contractorNotFound()
  return row.organisation
}

/**
 * Requires that a contractor changes nothing but its address, and only to its own account. With any other address, the
 * refusal `address-taken` would reveal which accounts its employer pays.
 */
function requireOwnChange(user: User, row: Row, changes: ContractorChanges): void {
  requireOwnFields(changes)
  const { address } = changes
  if (!address || address === row.address) return
  if (provenAccounts(user).includes(address)) return
  throw new Refusal('account-unproven')
}

/** Requires that a contractor changes nothing but its address. @throws Refusal `employer-required` */
export function requireOwnFields(changes: unknown): void {
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) return
  if (fieldsOf(changes).some((field) => field !== 'address')) throw new Refusal('employer-required')
}

function fieldsOf(changes: object): string[] {
  return Object.entries(changes).flatMap(([field, value]) => (value === undefined ? [] : field))
}

/** A new email and deactivation void the invite links. */
function plainFields(row: Row, { name, email, rate, status, externalId }: ContractorChanges): Partial<Row> {
  const folded = email ? foldEmail(email) : null
  const isVoid = (email !== undefined && folded !== row.emailFolded) || status === 'inactive'
  return {
    name: name ?? row.name,
    ...(email !== undefined && { email, emailFolded: folded }),
    ...(isVoid && { inviteVersion: row.inviteVersion + 1 }),
    ...(rate !== undefined && { rateAmount: rate?.amount ?? null, rateCurrency: rate?.currency ?? null }),
    ...(externalId !== undefined && { externalId }),
  }
}

/**
 * A new address determines the status: a waiting contractor becomes ready if the address is registered, and a ready one
 * waits again if it is not. A status in `changes` takes precedence.
 */
function addressAndStatus(
  row: Row,
  { address, status }: ContractorChanges,
  viewingKeys: ViewingKeys,
): Partial<Row> & { status: ContractorStatus } {
  if (address === undefined) return { status: status ?? row.status }
  const pvk = viewingKeys.get(address ?? '') ?? null
  // The ledger may be unreachable, so a missing registration does not demote a contractor whose address is unchanged.
  if (pvk === null && address === row.address) return { status: status ?? row.status }
  return { address, pvk, status: status ?? statusWith(pvk !== null, row) }
}

function statusWith(isRegistered: boolean, { status, linkedSub }: Row): ContractorStatus {
  if (status === 'inactive') return status
  if (isRegistered) return 'ready'
  if (status !== 'ready') return status
  return linkedSub === null ? 'invited' : 'onboarding'
}
