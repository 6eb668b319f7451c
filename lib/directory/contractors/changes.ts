import { eq } from 'drizzle-orm'
import { type ContractorStatus, contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { foldEmail } from '#lib/text/plain-text.ts'
import { cancelPayouts } from '../payouts/cancelling.ts'
import { actorOf, type EmployerContext, provenAccounts, type User, type UserContext } from '../user.ts'
import { contractorNotFound, ownContractor, visibleTo } from './contractors.ts'
import { refuseConflict } from './creation.ts'
import { findViewingKeys, type LedgerContext, type ViewingKeys } from './registration.ts'
import { CONTRACTOR_COLUMNS, type Contractor, type ContractorChanges, presentContractor } from './schema.ts'

/**
 * Changes the fields that `changes` names. The employer may change all of them, a contractor only the address of its
 * own record, to an account that it has proven to own. Deactivating a contractor cancels its `draft` and `ready`
 * payouts.
 * @throws Refusal `contractor-not-found`; `employer-required` or `account-unproven` for a contractor; `email-taken`,
 *   `address-taken`
 */
export async function changeContractor(
  { db, accounts, user, now }: UserContext & LedgerContext,
  { id, changes }: { id: string; changes: ContractorChanges },
): Promise<Contractor> {
  const organisation = await requireVisible(db, user, id)
  const found = await findViewingKeys(accounts, [changes.address])
  const actor = actorOf(user.identity)
  const changing = transactFor(db, organisation, async (tx) => {
    const [row] = await tx.select().from(contractors).where(visibleTo(user, id)).for('update')
    if (!row) throw contractorNotFound()
    const fields = fieldsOf(changes)
    if (row.organisation !== user.organisation?.id) await requireOwnChange(tx, user, row, changes)
    const next = { ...plainFields(row, changes), ...placeOf(row, changes, found) }
    const [changed] = await tx.update(contractors).set(next).where(eq(contractors.id, id)).returning(CONTRACTOR_COLUMNS)
    if (!changed) throw contractorNotFound()
    const detail = { fields, status: changed.status }
    await recordAudit(tx, now, { organisation, actor, action: 'contractor.updated', subject: id, detail })
    if (changed.status === 'inactive') await cancelPayouts(tx, row, { actor, now })
    return presentContractor(changed)
  })
  return await changing.catch(refuseConflict)
}

/**
 * Marks a contractor as deleted: no list or look-up shows it. Its payouts stay; `draft` and `ready` ones are canceled.
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
 * The organisation of a contractor that the user may see. It runs first: a user without access must not have the ledger
 * asked.
 * @throws Refusal `contractor-not-found`, `employer-required`
 */
async function requireVisible(db: Database, user: User, id: string): Promise<string> {
  const columns = { organisation: contractors.organisation }
  const [row] = await db.select(columns).from(contractors).where(visibleTo(user, id))
  if (!row) throw contractorNotFound()
  return row.organisation
}

/**
 * Requires that a contractor changes only the address of its own record, to an account of its own. If it could set any
 * address, the refusal `address-taken` would tell which accounts its employer pays.
 */
async function requireOwnChange(tx: Database, user: User, row: Row, changes: ContractorChanges): Promise<void> {
  if (fieldsOf(changes).some((field) => field !== 'address')) {
    throw new Refusal('employer-required', 'employer role required')
  }
  const { address } = changes
  if (!address || address === row.address) return
  if ((await provenAccounts(tx, user)).includes(address)) return
  throw new Refusal('account-unproven', 'sign in with that account first')
}

function fieldsOf(changes: ContractorChanges): string[] {
  return Object.entries(changes).flatMap(([field, value]) => (value === undefined ? [] : field))
}

/** Name, email and rate. Invite links become void when the email changes, or the contractor becomes inactive. */
function plainFields(row: Row, { name, email, rate, status }: ContractorChanges): Partial<Row> {
  const folded = email ? foldEmail(email) : null
  const isVoid = (email !== undefined && folded !== row.emailFolded) || status === 'inactive'
  return {
    name: name ?? row.name,
    ...(email !== undefined && { email, emailFolded: folded }),
    ...(isVoid && { inviteVersion: row.inviteVersion + 1 }),
    ...(rate !== undefined && { rateAmount: rate?.amount ?? null, rateCurrency: rate?.currency ?? null }),
  }
}

/**
 * Address, viewing key and status. When the change gives an address, the ledger decides the status: a waiting
 * contractor becomes ready with a registered address, and a ready one waits again with an unregistered one. A status
 * that the change gives stands as asked.
 */
function placeOf(
  row: Row,
  { address, status }: ContractorChanges,
  found: ViewingKeys,
): Partial<Row> & { status: ContractorStatus } {
  if (address === undefined) return { status: status ?? row.status }
  const pvk = found.get(address ?? '') ?? null
  // The address is the same, and no registration was found: the ledger may have been out of reach, so nothing changes.
  if (pvk === null && address === row.address) return { status: status ?? row.status }
  return { address, pvk, status: status ?? statusWith(pvk !== null, row) }
}

function statusWith(registered: boolean, { status, linkedSub }: Row): ContractorStatus {
  if (status === 'inactive') return status
  if (registered) return 'ready'
  if (status !== 'ready') return status
  return linkedSub === null ? 'invited' : 'onboarding'
}
