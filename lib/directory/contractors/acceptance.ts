import { eq } from 'drizzle-orm'
import { type ContractorStatus, contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { UserContext } from '../context.ts'
import { dissolveIfEmpty } from '../organisations.ts'
import { actorOf, lockUser, type PersonIdentity, type User } from '../users.ts'
import { readyEntries, refuseConflict } from './creation.ts'
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
  const viewingKeys = await findViewingKeys(accounts, [requireInvitee(user, unlocked).address])
  const accepting = transactFor(db, unlocked.organisation, async (tx) => {
    const present = await lockUser(tx, user, now)
    const [record] = await tx.select().from(contractors).where(isValidInvite(name, now)).for('update')
    if (!record) throw inviteNotFound()
    // Checked again under the lock. If the address has changed, a later lookup finds the new one's registration.
    const { address, invitee } = requireInvitee(present, record)
    const pvk = viewingKeys.get(address ?? '')
    const { kind, sub } = invitee
    const status = statusAfter(record.status, Boolean(pvk))
    const fields = { linkedKind: kind, linkedSub: sub, inviteAcceptedAt: now, status, address, ...(pvk && { pvk }) }
    const [linked] = await tx.update(contractors).set(fields).where(eq(contractors.id, record.id)).returning()
    if (!linked) throw inviteNotFound()
    const { organisation, id } = linked
    const entry = { organisation, actor, action: 'contractor.linked', subject: id } as const
    const ready = readyEntries({ organisation, actor, id }, record.status, linked.status)
    await recordAudit(tx, now, { ...entry, detail: { status: linked.status } }, ...ready)
    await dissolveIfEmpty(tx, { organisation: present.organisationId, actor }, now)
    return presentContractor(linked)
  })
  return await accepting.catch(refuseConflict)
}

type Row = typeof contractors.$inferSelect

/**
 * Requires an open invite that `user` may accept. Returns the address that the record then has, and the identity that it is linked
 * to: the invited one, which keeps the record if the person's identities are separated.
 */
function requireInvitee(
  user: User,
  record: Row,
): { address: string | null; invitee: Pick<PersonIdentity, 'kind' | 'sub'> } {
  if (record.organisation === user.organisationId) throw new Refusal('own-invite')
  if (record.inviteAcceptedAt !== null) throw new Refusal('invite-accepted')
  const { identity, identities } = user
  const isNamed = ({ kind, sub, email }: PersonIdentity) =>
    kind === 'ledger' ? sub === record.address : email !== null && email === record.emailFolded
  const named = identities.filter(isNamed)
  const isUnaddressed = record.address === null && record.emailFolded === null
  const invitee = named.find((each) => each.kind === identity.kind && each.sub === identity.sub) ?? named[0]
  if (!invitee && !isUnaddressed) throw new Refusal('invite-for-other')
  return { address: record.address ?? (identity.kind === 'ledger' ? identity.sub : null), invitee: invitee ?? identity }
}

function statusAfter(status: ContractorStatus, isRegistered: boolean): ContractorStatus {
  if (isRegistered) return 'ready'
  return status === 'invited' ? 'onboarding' : status
}

function inviteNotFound(): Refusal {
  return new Refusal('invite-not-found')
}
