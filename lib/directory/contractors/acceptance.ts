import { eq } from 'drizzle-orm'
import { type ContractorStatus, contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { UserContext } from '../context.ts'
import { dissolveIfEmpty, lockIdentities } from '../organisations.ts'
import { actorOf, provenAccounts, type User } from '../users.ts'
import { refuseConflict } from './creation.ts'
import { readInviteToken } from './invite-token.ts'
import { isValidInvite } from './invites.ts'
import { findViewingKeys } from './registration.ts'
import { type Contractor, presentContractor } from './schema.ts'

/**
 * Links the user to the contractor record of an invite. The record takes the account of a wallet user as its address if
 * it has none. The user leaves its own organisation if that is empty. Of several concurrent users, one is linked.
 * @throws Refusal `invite-not-found` for a void or expired invite; `invite-for-other`, `own-invite`, `invite-accepted`,
 *   `address-taken`
 */
export async function acceptInvite(
  { db, user, now, accounts, settings }: UserContext,
  token: string,
): Promise<Contractor> {
  const name = readInviteToken(settings.invites.secret, token)
  if (!name) throw inviteNotFound()
  const actor = actorOf(user.identity)
  const [unlocked] = await db.select().from(contractors).where(isValidInvite(name, now))
  if (!unlocked) throw inviteNotFound()
  const viewingKeys = await findViewingKeys(accounts, [requireInvitee(user, unlocked)])
  const accepting = transactFor(db, unlocked.organisation, async (tx) => {
    await lockIdentities(tx, user.identity)
    const [record] = await tx.select().from(contractors).where(isValidInvite(name, now)).for('update')
    if (!record) throw inviteNotFound()
    // Checked again under the lock. If the address has changed, a later lookup finds the new one's registration.
    const address = requireInvitee(user, record)
    const pvk = viewingKeys.get(address ?? '')
    const { kind, sub } = user.identity
    const status = statusAfter(record.status, Boolean(pvk))
    const fields = { linkedKind: kind, linkedSub: sub, inviteAcceptedAt: now, status, address, ...(pvk && { pvk }) }
    const [linked] = await tx.update(contractors).set(fields).where(eq(contractors.id, record.id)).returning()
    if (!linked) throw inviteNotFound()
    const { organisation, id } = linked
    const detail = { status: linked.status }
    await recordAudit(tx, now, { organisation, actor, action: 'contractor.linked', subject: id, detail })
    await dissolveIfEmpty(tx, { organisation: user.organisationId, actor }, now)
    return presentContractor(linked)
  })
  return await accepting.catch(refuseConflict)
}

type Row = typeof contractors.$inferSelect

/** Requires an open invite that `user` may accept. Returns the address that the record then has. */
function requireInvitee(user: User, record: Row): string | null {
  if (record.organisation === user.organisationId) throw new Refusal('own-invite')
  if (record.inviteAcceptedAt !== null) throw new Refusal('invite-accepted')
  const accounts = provenAccounts(user)
  const isUnaddressed = record.address === null && record.emailFolded === null
  const hasAddress = record.address !== null && accounts.includes(record.address)
  const hasEmail = record.emailFolded !== null && user.identities.some(({ email }) => email === record.emailFolded)
  if (!isUnaddressed && !hasAddress && !hasEmail) throw new Refusal('invite-for-other')
  return record.address ?? (user.identity.kind === 'ledger' ? user.identity.sub : null)
}

function statusAfter(status: ContractorStatus, isRegistered: boolean): ContractorStatus {
  if (isRegistered) return 'ready'
  return status === 'invited' ? 'onboarding' : status
}

function inviteNotFound(): Refusal {
  return new Refusal('invite-not-found')
}
