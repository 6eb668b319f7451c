import { and, eq, gt, isNull, ne, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { contractorNotFound, ownContractor } from '../contractors/contractors.ts'
import { givenName } from '../organisations.ts'
import type { Employer, EmployerContext } from '../user.ts'
import { type MailSettings, sendMail, writeInvite } from './mail.ts'
import { type InviteName, inviteEnd, inviteToken, readInviteToken } from './token.ts'

/**
 * How invites are made: `secret` signs their tokens, and a token appended to `page` is the link. At most `daily` are
 * mailed for one organisation in 24 hours.
 */
interface InviteSettings {
  secret: Uint8Array
  page: string
  daily: number
}

/** The context of a verb of invites. */
export interface InviteContext {
  settings: { invites: InviteSettings }
}

/**
 * Invites a contractor, for the first time or again: earlier links become void. The link is mailed if a mail server is
 * configured and the contractor has an email.
 * @throws Refusal `contractor-not-found`, `contractor-inactive`, `contractor-accepted`; `invite-limit` once enough has
 *   been mailed for the organisation; `mail-unavailable`: the next try voids the link that could not be sent
 */
export async function inviteContractor(
  context: EmployerContext & InviteContext & { settings: { mail: MailSettings | undefined } },
  id: string,
): Promise<{ inviteUrl: string }> {
  const { db, settings, employer, now } = context
  const issued = await transactFor(db, employer.organisation, (tx) => issueInvite({ ...context, db: tx }, id))
  const inviteUrl = `${settings.invites.page}${inviteToken(settings.invites.secret, issued)}`
  if (settings.mail && issued.email !== null) {
    try {
      await sendMail(settings.mail, writeInvite({ ...issued, to: issued.email, link: inviteUrl }))
    } catch (error) {
      await recordAudit(db, now, { ...entryOf(employer, id, issued.version), action: 'contractor.mail-failed' })
      throw error
    }
  }
  return { inviteUrl }
}

async function issueInvite(
  { db: tx, settings: { invites, mail }, employer, now }: Parameters<typeof inviteContractor>[0],
  id: string,
) {
  const [issued] = await tx
    .update(contractors)
    .set({ inviteVersion: sql`${contractors.inviteVersion} + 1`, inviteExpiresAt: inviteEnd(now) })
    // The holder of a link to an accepted record could take the record over.
    .where(and(ownContractor(employer, id), ne(contractors.status, 'inactive'), isNull(contractors.linkedKind)))
    .returning({ name: contractors.name, email: contractors.email, version: contractors.inviteVersion })
  if (!issued) throw await whyNotInvited(tx, employer, id)
  const { organisation } = employer
  const mailed = mail !== undefined && issued.email !== null
  if (mailed) await requireMailLeft(tx, organisation, invites.daily, now)
  const company = await givenName(tx, organisation)
  const { detail, ...entry } = entryOf(employer, id, issued.version)
  await recordAudit(tx, now, {
    ...entry,
    action: 'contractor.invited',
    detail: { ...detail, ...(mailed && { mailed }) },
  })
  return { ...issued, contractor: id, company }
}

async function whyNotInvited(tx: Database, employer: Employer, id: string): Promise<Refusal> {
  const [found] = await tx.select({ status: contractors.status }).from(contractors).where(ownContractor(employer, id))
  if (!found) return contractorNotFound()
  if (found.status === 'inactive') return new Refusal('contractor-inactive', 'contractor is inactive')
  return new Refusal('contractor-accepted', 'contractor has accepted already')
}

/** The entry of the audit log about an invite. */
function entryOf(employer: Employer, id: string, version: number) {
  return { ...employer, subject: id, detail: { version } }
}

/** The part of an open invite that the holder of its token may see. */
interface OpenInvite {
  /** the name of the employer; undefined while it has given none */
  company: string | undefined
  expiresAt: Date
}

/** The invite that `token` opens, or undefined if it is void, expired or accepted. */
export async function findOpenInvite(
  { db, settings, now }: InviteContext & { db: Database; now: Date },
  token: string,
): Promise<OpenInvite | undefined> {
  const name = readInviteToken(settings.invites.secret, token)
  if (!name) return undefined
  const [invite] = await db
    .select({ organisation: contractors.organisation, expiresAt: contractors.inviteExpiresAt })
    .from(contractors)
    .where(and(isValid(name, now), isNull(contractors.inviteAcceptedAt)))
  return invite && { company: await givenName(db, invite.organisation), expiresAt: invite.expiresAt }
}

/** The condition for the record of an invite that is neither void nor expired, accepted or not. */
export function isValid({ contractor, version }: InviteName, now: Date) {
  return and(
    eq(contractors.id, contractor),
    eq(contractors.inviteVersion, version),
    gt(contractors.inviteExpiresAt, now),
    ne(contractors.status, 'inactive'),
    isNull(contractors.deletedAt),
  )
}

const DAY_MS = 86_400_000

/**
 * Limits the invites that are mailed for an organisation in 24 hours. Every user with a wallet can be an employer, and
 * the mail goes out in the service's name to any address that the employer gives. An invite counts before it is mailed,
 * and no longer once mailing has failed. Simultaneous requests take turns.
 * @throws Refusal `invite-limit`, with the seconds until the oldest invite counts no longer
 */
async function requireMailLeft(tx: Database, organisation: string, limit: number, now: Date): Promise<void> {
  await tx
    .select({ id: organisations.id })
    .from(organisations)
    .where(eq(organisations.id, organisation))
    .for('no key update')
  const isDue = sql`${auditLog.action} = 'contractor.invited' and (${auditLog.detail} ->> 'mailed')::boolean`
  const hasFailed = sql`${auditLog.action} = 'contractor.mail-failed'`
  const [day] = await tx
    .select({
      mailed: sql<number>`(count(*) filter (where ${isDue}) - count(*) filter (where ${hasFailed}))::int`,
      oldest: sql`min(${auditLog.at}) filter (where ${isDue})`.mapWith(auditLog.at),
    })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.organisation, organisation),
        gt(auditLog.at, new Date(now.getTime() - DAY_MS)),
        // Written exactly as in the partial index, so that PostgreSQL uses the index.
        sql`${auditLog.action} in ('contractor.invited', 'contractor.mail-failed')`,
      ),
    )
  if (!day || day.mailed < limit) return
  const message = `no more than ${limit} invites are mailed for an organisation in 24 hours`
  const wait = day.oldest.getTime() + DAY_MS - now.getTime()
  throw new Refusal('invite-limit', message, { retryAfter: Math.ceil(wait / 1000) })
}
