import { and, eq, gt, isNotNull, isNull, ne, or, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { type ContractorStatus, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { finishRequest, forgetRequest, transactOnce } from '#lib/db/idempotency.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { DirectoryContext, EmployerContext } from '../context.ts'
import { isId } from '../ids.ts'
import { sendMail } from '../mail.ts'
import { chosenName } from '../organisations.ts'
import type { Employer } from '../users.ts'
import { contractorNotFound, ownContractor } from './contractors.ts'
import { composeInvite } from './invite-mail.ts'
import { type InviteName, inviteExpiry, inviteToken, readInviteToken } from './invite-token.ts'

/**
 * Issues a link, which voids earlier ones, and mails it if SMTP is configured and the contractor has an email.
 * @param note an operator's reason, for the audit log
 * @throws Refusal `contractor-not-found`, `contractor-inactive`, `contractor-accepted`, `invite-limit`;
 *   `mail-unavailable` and `mail-refused` with the link, which the next attempt voids
 */
export async function inviteContractor(
  context: EmployerContext,
  id: string,
  note?: string,
): Promise<{ inviteUrl: string }> {
  const { db, settings, employer, once, now } = context
  const { mail } = settings
  const invite = await transactOnce<IssuedInvite>(context, employer.organisation, {
    work: (tx) => issueInvite({ ...context, db: tx }, id, note),
    refer: referToInvite,
    unfinishedSeconds: ({ email }) => (mail && email !== null ? MAILING_SECONDS : undefined),
  })
  const inviteUrl = linkOf(context, invite)
  if (mail && invite.email !== null) {
    try {
      await sendMail(mail, composeInvite({ ...invite, to: invite.email, link: inviteUrl }))
    } catch (error) {
      const { detail, ...entry } = entryOf(employer, id, invite.version)
      const reason = error instanceof Refusal ? error.code : 'internal'
      await transact(db, async (tx) => {
        await recordAudit(tx, now, { ...entry, action: 'contractor.mail-failed', detail: { ...detail, reason } })
        if (once) await forgetRequest(tx, once, referToInvite(invite))
      })
      if (!(error instanceof Refusal)) throw error
      const { message, cause, retryAfter } = error
      throw new Refusal(error.code, message, {
        ...{ cause, details: { inviteUrl } },
        ...(retryAfter !== undefined && { retryAfter }),
      })
    }
    if (once) await finishRequest(db, once, referToInvite(invite))
  }
  return { inviteUrl }
}

/** After this time, a request that has not mailed its invite counts as failed (seconds): longer than a mail takes. */
const MAILING_SECONDS = 60

const referToInvite = ({ contractor, version }: InviteName): RecordedOutcome => ({ ids: [contractor], version })

const linkOf = ({ settings: { invites } }: DirectoryContext, name: InviteName) =>
  `${invites.page}${inviteToken(invites.secret, name)}`

/**
 * Presents the link again that a request has issued, even if it is void by now. Mails nothing.
 * @throws Refusal `contractor-not-found` if the contractor was deleted
 */
export async function presentIssuedInvite(
  context: EmployerContext,
  { ids: [contractor = ''], version = 0 }: RecordedOutcome,
): Promise<{ inviteUrl: string }> {
  const { db, employer } = context
  if ((await db.$count(contractors, ownContractor(employer, contractor))) === 0) throw contractorNotFound()
  return { inviteUrl: linkOf(context, { contractor, version }) }
}

interface IssuedInvite extends InviteName {
  name: string
  email: string | null
  company: string | undefined
}

async function issueInvite(context: EmployerContext, id: string, note: string | undefined): Promise<IssuedInvite> {
  const { db: tx, settings, employer, now } = context
  const { invites, mail } = settings
  const [invite] = await tx
    .update(contractors)
    .set({ inviteVersion: sql`${contractors.inviteVersion} + 1`, inviteExpiresAt: inviteExpiry(now) })
    // A link to a record that is already linked would let its holder take the record over.
    .where(and(ownContractor(employer, id), ne(contractors.status, 'inactive'), isNull(contractors.linkedKind)))
    .returning({ name: contractors.name, email: contractors.email, version: contractors.inviteVersion })
  if (!invite) throw await whyNotInvited(tx, employer, id)
  const { organisation } = employer
  const mailed = mail !== undefined && invite.email !== null
  if (mailed) await requireMailQuota(tx, organisation, invites.daily, now)
  const company = await chosenName(tx, organisation)
  const { detail, ...entry } = entryOf(employer, id, invite.version)
  await recordAudit(tx, now, {
    ...entry,
    action: 'contractor.invited',
    detail: { ...detail, ...(mailed && { mailed }), ...(note !== undefined && { note }) },
  })
  return { ...invite, contractor: id, company }
}

async function whyNotInvited(tx: Database, employer: Employer, id: string): Promise<Refusal> {
  const [row] = await tx.select({ status: contractors.status }).from(contractors).where(ownContractor(employer, id))
  if (!row) return contractorNotFound()
  if (row.status === 'inactive') return new Refusal('contractor-inactive')
  return new Refusal('contractor-accepted')
}

function entryOf(employer: Employer, id: string, version: number) {
  return { ...employer, subject: id, detail: { version } }
}

/** The details of an invite for the holder of its token. */
interface Invite {
  /** the employer's name; undefined until it has set one */
  company: string | undefined
  /** the invited email, masked, or the invited name without one */
  invited: string
  /** how it can be accepted: by what its record names, or either way if that names neither; and whether it names an account */
  ways: { email: boolean; wallet: boolean; namesAccount: boolean }
  expiresAt: Date
  /** the contractor's record once the invite is accepted, and whether it has an account */
  accepted: { contractor: string; status: ContractorStatus; hasAccount: boolean } | undefined
}

/**
 * Returns the invite that `token` opens, or undefined if it is void, or expired before it was accepted. An accepted
 * invite does not expire: its holder may return to it for the next steps.
 */
export async function findInvite({ db, settings, now }: DirectoryContext, token: string): Promise<Invite | undefined> {
  const name = readInviteToken(settings.invites.secret, token)
  if (!name) return undefined
  const [invite] = await db
    .select({
      organisation: contractors.organisation,
      name: contractors.name,
      email: contractors.email,
      expiresAt: contractors.inviteExpiresAt,
      acceptedAt: contractors.inviteAcceptedAt,
      status: contractors.status,
      address: contractors.address,
    })
    .from(contractors)
    .where(and(isOfInvite(name), or(isNotNull(contractors.inviteAcceptedAt), gt(contractors.inviteExpiresAt, now))))
  if (!invite) return undefined
  const { organisation, name: person, email, expiresAt, acceptedAt, status, address } = invite
  return {
    company: await chosenName(db, organisation),
    invited: email === null ? person : maskEmail(email),
    ways: {
      email: email !== null || address === null,
      // A contract cannot sign in.
      wallet: address?.startsWith('G') ?? email === null,
      namesAccount: address !== null,
    },
    expiresAt,
    accepted: acceptedAt === null ? undefined : { contractor: name.contractor, status, hasAccount: address !== null },
  }
}

/**
 * Masks an email, so that its owner recognizes it: the link may have been forwarded to another person. `ada@b.example`
 * becomes `a…@b.example`.
 */
function maskEmail(email: string): string {
  const [first = ''] = email
  return `${first}…${email.slice(email.lastIndexOf('@'))}`
}

/** The condition for the record of an invite that is neither void nor expired. It may be accepted. */
export const isValidInvite = (name: InviteName, now: Date) =>
  and(isOfInvite(name), gt(contractors.inviteExpiresAt, now))

/** The condition for the record of an invite that is not void. */
const isOfInvite = ({ contractor, version }: InviteName) =>
  and(
    eq(contractors.id, contractor),
    eq(contractors.inviteVersion, version),
    ne(contractors.status, 'inactive'),
    isNull(contractors.deletedAt),
  )

const DAY_MS = 86_400_000

/**
 * Limits the invites that are mailed for an organisation in 24 hours: anyone with a wallet can be an employer and have
 * mail sent to any address in the service's name. An invite counts when it is issued, and stops counting if mailing
 * fails. Locks the organisation, so that concurrent requests cannot exceed the limit together.
 * @throws Refusal `invite-limit`, with the seconds until the oldest invite leaves the window
 */
async function requireMailQuota(tx: Database, organisation: string, limit: number, now: Date): Promise<void> {
  await tx
    .select({ id: organisations.id })
    .from(organisations)
    .where(eq(organisations.id, organisation))
    .for('no key update')
  const isMailed = sql`${auditLog.action} = 'contractor.invited' and (${auditLog.detail} ->> 'mailed')::boolean`
  const hasFailed = sql`${auditLog.action} = 'contractor.mail-failed'`
  const [day] = await tx
    .select({
      mailed: sql<number>`(count(*) filter (where ${isMailed}) - count(*) filter (where ${hasFailed}))::int`,
      oldest: sql`min(${auditLog.at}) filter (where ${isMailed})`.mapWith(auditLog.at),
    })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.organisation, organisation),
        gt(auditLog.at, new Date(now.getTime() - DAY_MS)),
        // Worded exactly as in the partial index, so that PostgreSQL uses the index.
        sql`${auditLog.action} in ('contractor.invited', 'contractor.mail-failed')`,
      ),
    )
  if (!day || day.mailed < limit) return
  const message = `at most ${limit} invites are mailed for an organisation in 24 hours`
  const waitMs = day.oldest.getTime() + DAY_MS - now.getTime()
  throw new Refusal('invite-limit', message, { retryAfter: Math.ceil(waitMs / 1000) })
}

/**
 * Mails a contractor a new invite for an operator, who never sees the link. Resolves to false, without issuing one, if no
 * mail can be sent: SMTP is not configured, or the contractor has no email.
 * @throws Refusal like `inviteContractor`
 */
export async function resendInvite(
  context: DirectoryContext,
  { id, actor, note }: { id: string; actor: Actor; note: string },
): Promise<boolean> {
  const { db, settings } = context
  if (!isId(id)) throw contractorNotFound()
  const [record] = await db
    .select({ organisation: contractors.organisation, email: contractors.email })
    .from(contractors)
    .where(and(eq(contractors.id, id), isNull(contractors.deletedAt)))
  if (!record) throw contractorNotFound()
  if (settings.mail === undefined || record.email === null) return false
  await inviteContractor({ ...context, employer: { organisation: record.organisation, actor } }, id, note)
  return true
}
