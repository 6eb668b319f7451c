import { eq } from 'drizzle-orm'
import { type ContractorStatus, contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { refuseConflict } from '../contractors/creation.ts'
import { findViewingKeys, type LedgerContext } from '../contractors/registration.ts'
import { type Contractor, presentContractor } from '../contractors/schema.ts'
import { leaveEmptyOrganisation, lockIdentities } from '../organisations.ts'
import { actorOf, type User, type UserContext } from '../user.ts'
import { type InviteContext, isValid } from './invites.ts'
import { emailOf } from './search.ts'
import { readInviteToken } from './token.ts'

/**
 * Links the user to the contractor record of an invite. A wallet's account becomes the record's address if that has
 * none. The user leaves its own organisation if that is empty. Of several users who accept at once, one is linked.
 * @throws Refusal `invite-not-found` for an invite that is void or expired; `invite-for-other`, `own-invite`,
 *   `invite-accepted`, `address-taken`
 */
export async function acceptInvite(
  { db, user, now, accounts, settings }: UserContext & LedgerContext & InviteContext,
  token: string,
): Promise<Contractor> {
  const name = readInviteToken(settings.invites.secret, token)
  if (!name) throw inviteNotFound()
  const actor = actorOf(user.identity)
  const [seen] = await db.select().from(contractors).where(isValid(name, now))
  if (!seen) throw inviteNotFound()
  const found = await findViewingKeys(accounts, [requireMeant(user, seen)])
  const accepting = transactFor(db, seen.organisation, async (tx) => {
    await lockIdentities(tx, user.identity)
    const [record] = await tx.select().from(contractors).where(isValid(name, now)).for('update')
    if (!record) throw inviteNotFound()
    // Judged again under the lock. If the address has changed since, a later look-up will find its registration.
    const address = requireMeant(user, record)
    const pvk = found.get(address ?? '')
    const { kind, sub } = user.identity
    const status = statusAfter(record.status, Boolean(pvk))
    const accepted = { linkedKind: kind, linkedSub: sub, inviteAcceptedAt: now, status, address, ...(pvk && { pvk }) }
    const [linked] = await tx.update(contractors).set(accepted).where(eq(contractors.id, record.id)).returning()
    if (!linked) throw inviteNotFound()
    const { organisation, id } = linked
    const detail = { status: linked.status }
    await recordAudit(tx, now, { organisation, actor, action: 'contractor.linked', subject: id, detail })
    await leaveEmptyOrganisation(tx, user.identity, now)
    return presentContractor(linked)
  })
  return await accepting.catch(refuseConflict)
}

type Row = typeof contractors.$inferSelect

/** Requires an open invite that is meant for `user`. Returns the address that the record has, or gets by the user. */
function requireMeant({ identity, organisation }: User, record: Row): string | null {
  if (record.organisation === organisation?.id) {
    throw new Refusal('own-invite', 'this is an invite of your own organisation')
  }
  if (record.inviteAcceptedAt !== null) throw new Refusal('invite-accepted', 'invite accepted already')
  const account = identity.kind === 'ledger' ? identity.sub : null
  const email = emailOf(identity)
  const isForAnybody = record.address === null && record.emailFolded === null
  const shows = (theirs: string | null, own: string | null | undefined) => theirs !== null && theirs === own
  const isShown = shows(record.address, account) || shows(record.emailFolded, email)
  if (!isForAnybody && !isShown) throw new Refusal('invite-for-other', 'this invite is for somebody else')
  return record.address ?? account
}

function statusAfter(status: ContractorStatus, registered: boolean): ContractorStatus {
  if (registered) return 'ready'
  return status === 'invited' ? 'onboarding' : status
}

function inviteNotFound(): Refusal {
  return new Refusal('invite-not-found', 'invite not found')
}
