import { randomUUID } from 'node:crypto'
import { and, eq, inArray, isNotNull, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import { mailedPayees, paymentMails } from '#drizzle/schema/mails.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Session, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr } from '#lib/text/plain-text.ts'
import type { DirectoryContext, UserContext } from './context.ts'
import { composeMail, type Message, sendMail } from './mail.ts'
import { dissolveIfEmpty, type IdentityName, isIdentity, lockPersons } from './organisations.ts'
import { actorOf, admitUser, type PersonIdentity, type User } from './users.ts'

const INVALID = 'must be a valid session'

/** The body of POST /me/identities. */
export const otherIdentity = z.object({
  session: z
    .string({ error: absentOr(INVALID) })
    .min(1, INVALID)
    .meta({ description: 'a session of the same person’s other identity' }),
})

/** @throws Refusal `session-invalid`, since this session is a field of the body and not the caller's own */
export async function verifyOtherSession(settings: SessionSettings, token: string, now: Date): Promise<Session> {
  try {
    return await verifySession(settings, token, now)
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause
    throw new Refusal('session-invalid', `session ${INVALID}`, { cause })
  }
}

/**
 * Joins another identity, and every identity that is already joined to it, to the user: from then on they are one person. Idempotent.
 * The person keeps the organisation that has records. If neither has any, it keeps a founded one, its own in preference to the
 * other's. A mail goes to each verified email.
 * @throws Refusal `organisation-in-use` if both have an organisation with records; `identity-joined`
 */
export async function joinIdentity(context: UserContext, other: Session): Promise<User> {
  const { db, user, now } = context
  const { identity } = await admitUser(context, other)
  const actor = actorOf(user.identity)
  const isNew = await transactFor(db, user.organisationId, async (tx) => {
    await lockPersons(tx, user.identity, identity)
    await requireOwner(tx, user.identity)
    if ((await organisationOf(tx, identity)) === (await organisationOf(tx, user.identity))) return false
    const [from, to] = (await keepsOther(tx, { actor, own: user.identity, other: identity }, now))
      ? [user.identity, identity]
      : [identity, user.identity]
    const organisation = await organisationOf(tx, to)
    const left = await organisationOf(tx, from)
    await tx.update(identities).set({ organisation, joinedAt: now }).where(eq(identities.organisation, left))
    await keepMuted(tx, left, organisation)
    await moveMails(tx, left, organisation)
    const subject = `${identity.kind}:${identity.sub}`
    await recordAudit(tx, now, { organisation, actor, action: 'identity.joined', subject })
    return true
  })
  const joined = await admitUser(context, user.identity)
  if (isNew) await tellOf(context, joined)
  return joined
}

/** Whether the person keeps the other's organisation. Dissolves the organisation that is not kept. */
async function keepsOther(
  tx: Database,
  { actor, own, other }: { actor: Actor; own: IdentityName; other: IdentityName },
  now: Date,
): Promise<boolean> {
  const end = async (name: IdentityName) =>
    await dissolveIfEmpty(tx, { organisation: await organisationOf(tx, name), actor }, now)
  const isFounded = async (name: IdentityName) =>
    (await tx.$count(organisations, eq(organisations.id, await organisationOf(tx, name)))) > 0
  const [isOwnFounded, isOtherFounded] = [await isFounded(own), await isFounded(other)]
  if (!isOwnFounded && !isOtherFounded) return false
  if (isOwnFounded && (await end(other))) return false
  if (await end(own)) return true
  throw new Refusal('organisation-in-use')
}

/** A person who has unsubscribed from mails at a payment stays so under another id. */
async function keepMuted(tx: Database, from: string, to: string): Promise<void> {
  const { person, isMuted } = mailedPayees
  const muted = await tx.$count(mailedPayees, and(eq(person, from), isMuted))
  if (muted === 0) return
  const row = { person: to, isMuted: true }
  await tx
    .insert(mailedPayees)
    .values(row)
    .onConflictDoUpdate({ target: person, set: { isMuted: true } })
}

/** The mails at a payment that wait for a person go to it under its new id. */
async function moveMails(tx: Database, from: string, to: string): Promise<void> {
  const queued = await tx.delete(paymentMails).where(eq(paymentMails.person, from)).returning()
  if (queued.length > 0)
    await tx
      .insert(paymentMails)
      .values(queued.map((row) => ({ ...row, person: to })))
      .onConflictDoNothing()
  const [mailed] = await tx.delete(mailedPayees).where(eq(mailedPayees.person, from)).returning()
  if (!mailed?.mailedAt) return
  const { mailedAt } = mailed
  const set = { mailedAt: sql`greatest(${mailedPayees.mailedAt}, ${mailedAt.toISOString()}::timestamptz)` }
  await tx
    .insert(mailedPayees)
    .values({ person: to, mailedAt })
    .onConflictDoUpdate({ target: mailedPayees.person, set })
}

async function organisationOf(tx: Database, identity: IdentityName): Promise<string> {
  const columns = { organisation: identities.organisation }
  const [row] = await tx.select(columns).from(identities).where(isIdentity(identity))
  if (!row) throw new Error('an identity that was admitted has no row')
  return row.organisation
}

/**
 * Requires the first identity of a person, or a wallet. Another one, such as that of a company's system, must not outlive its removal
 * by joining yet another identity.
 */
async function requireOwner(tx: Database, name: IdentityName): Promise<void> {
  if (name.kind === 'ledger') return
  const [row] = await tx.select({ joinedAt: identities.joinedAt }).from(identities).where(isIdentity(name))
  if (row?.joinedAt) throw new Refusal('identity-joined')
}

/** Tells the person's verified emails. A mail that cannot be sent does not undo what was done. */
async function tellOf({ settings }: DirectoryContext, { identities: own }: User): Promise<void> {
  const { mail } = settings
  if (!mail) return
  const send = ({ email }: PersonIdentity) =>
    email === null
      ? undefined
      : sendMail(mail, composeNotice(email, own)).catch((error: unknown) =>
          log('error', 'mail', { failure: describeFailure(error) }),
        )
  await Promise.all(own.map(send))
}

function composeNotice(to: string, own: readonly PersonIdentity[]): Message {
  const others = own.filter(({ email }) => email !== to)
  const namesOf = ({ kind, sub, email }: PersonIdentity) =>
    kind === 'ledger' ? `the wallet ${sub}` : `${email ?? sub}`
  return composeMail({
    to,
    subject: 'Your account has another sign-in',
    paragraphs: [
      'Hello,',
      `The account with this email can now also be used with ${others.map(namesOf).join(' and ')}. Whoever holds that sees your records and payouts.`,
      'If that was not you, sign in with this email and remove it in your application.',
    ],
  })
}

/** The query of DELETE /me/identities/{kind}. */
export const separation = z.object({
  sub: z.string().max(255, 'must be the `sub` of an identity').optional().meta({
    description: 'only the identity with this `sub`',
  }),
})

/**
 * Undoes the joining of identities of one kind, of all or of the one with this `sub`: each becomes a separate person again and keeps
 * the contractor records that are linked to it. The first identity keeps the organisation.
 * @throws Refusal `identity-not-found`, `identity-first`, `identity-joined`; `identity-paying` while a payment or a run of a wallet is not finished
 */
export async function separateIdentities(
  context: UserContext,
  { kind, sub: only }: { kind: string; sub?: string | undefined },
): Promise<User> {
  const { db, user, now } = context
  const actor = actorOf(user.identity)
  await transactFor(db, user.organisationId, async (tx) => {
    await lockPersons(tx, user.identity)
    const organisation = await organisationOf(tx, user.identity)
    const all = await tx.select().from(identities).where(eq(identities.organisation, organisation))
    const meant = all.filter((identity) => identity.kind === kind && (only === undefined || identity.sub === only))
    // Each may leave by itself.
    if (meant.some((identity) => identity.sub !== user.identity.sub)) await requireOwner(tx, user.identity)
    const joined = meant.filter(({ joinedAt }) => joinedAt !== null)
    const isFirst = all.length > 1 && meant.length > 0
    if (joined.length === 0) throw new Refusal(isFirst ? 'identity-first' : 'identity-not-found')
    if (await isPaying(tx, joined)) throw new Refusal('identity-paying')
    for (const { kind, sub } of joined) {
      const own = randomUUID()
      await tx.update(identities).set({ organisation: own, joinedAt: null }).where(isIdentity({ kind, sub }))
      await keepMuted(tx, organisation, own)
      await recordAudit(tx, now, { organisation, actor, action: 'identity.separated', subject: `${kind}:${sub}` })
    }
  })
  return await admitUser(context, user.identity)
}

/** Whether one of the wallets has an unfinished payment or run, which would lose the organisation whose payouts it pays. */
async function isPaying(tx: Database, names: readonly IdentityName[]): Promise<boolean> {
  const accounts = names.flatMap(({ kind, sub }) => (kind === 'ledger' ? [sub] : []))
  const isOpen = and(
    eq(transfers.status, 'open'),
    isNotNull(transfers.payout),
    or(inArray(transfers.account, accounts), inArray(transfers.owner, accounts)),
  )
  const isRunning = and(
    eq(relayJobs.status, 'running'),
    isNotNull(relayJobs.batch),
    inArray(relayJobs.userSub, accounts),
  )
  return (await tx.$count(transfers, isOpen)) + (await tx.$count(relayJobs, isRunning)) > 0
}
