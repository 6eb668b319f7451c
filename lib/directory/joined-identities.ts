import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { z } from 'zod'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import { type Session, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr } from '#lib/text/plain-text.ts'
import type { DirectoryContext, UserContext } from './context.ts'
import { composeMail, type Message, sendMail } from './mail.ts'
import { dissolveIfEmpty, isIdentity, lockIdentities } from './organisations.ts'
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
 * Makes another identity, with all that are joined to it, an identity of the user: from then on they are one person. Idempotent. The
 * person keeps an organisation with records, else one that is founded, else the user's own. Tells every verified email of the person.
 * @throws Refusal `organisation-in-use` if both have an organisation with records
 */
export async function joinIdentity(context: UserContext, other: Session): Promise<User> {
  const { db, user, now } = context
  const { identity } = await admitUser(context, other)
  const actor = actorOf(user.identity)
  const isNew = await transactFor(db, user.organisationId, async (tx) => {
    await lockIdentities(tx, user.identity, identity)
    if ((await organisationOf(tx, identity)) === (await organisationOf(tx, user.identity))) return false
    const [from, to] = (await keepsOther(tx, { actor, own: user.identity, other: identity }, now))
      ? [user.identity, identity]
      : [identity, user.identity]
    const organisation = await organisationOf(tx, to)
    const isMoved = eq(identities.organisation, await organisationOf(tx, from))
    await tx.update(identities).set({ organisation, joinedAt: now }).where(isMoved)
    const subject = `${identity.kind}:${identity.sub}`
    await recordAudit(tx, now, { organisation, actor, action: 'identity.joined', subject })
    return true
  })
  const joined = await admitUser(context, user.identity)
  if (isNew) await tellOf(context, joined, identity)
  return joined
}

/** Whether two persons who become one keep the other's organisation. Ends the one that they do not keep. */
async function keepsOther(
  tx: Database,
  { actor, own, other }: { actor: Actor; own: PersonName; other: PersonName },
  now: Date,
): Promise<boolean> {
  const end = async (name: PersonName) =>
    await dissolveIfEmpty(tx, { organisation: await organisationOf(tx, name), actor }, now)
  const isFounded = async (name: PersonName) =>
    (await tx.$count(organisations, eq(organisations.id, await organisationOf(tx, name)))) > 0
  if ((await isFounded(own)) || !(await isFounded(other))) {
    if (await end(other)) return false
  }
  if (await end(own)) return true
  throw new Refusal('organisation-in-use')
}

async function organisationOf(tx: Database, identity: PersonName): Promise<string> {
  const columns = { organisation: identities.organisation }
  const [row] = await tx.select(columns).from(identities).where(isIdentity(identity))
  if (!row) throw new Error('an identity that was admitted has no row')
  return row.organisation
}

/** Tells the person's verified emails. A mail that cannot be sent does not undo what was done. */
async function tellOf({ settings }: DirectoryContext, { identities: own }: User, added: PersonName): Promise<void> {
  const { mail } = settings
  if (!mail) return
  for (const { email } of own) {
    if (email === null) continue
    await sendMail(mail, composeNotice(email, added)).catch((error: unknown) =>
      log('error', 'mail', { failure: describeFailure(error) }),
    )
  }
}

type PersonName = Pick<PersonIdentity, 'kind' | 'sub'>

function composeNotice(to: string, { kind, sub }: PersonName): Message {
  const what = kind === 'ledger' ? `The wallet ${sub}` : 'Another sign-in'
  return composeMail({
    to,
    subject: 'Your account has another sign-in',
    paragraphs: [
      'Hello,',
      `${what} was added to the account with this email. Whoever holds it sees your records and payouts.`,
      'If that was not you, sign in with this email and remove it: your application, or the operator of this service, can do that.',
    ],
  })
}

/**
 * Separates the identities of a kind that were joined to the user: each is a person of its own again, with the records that are linked to
 * it. The first identity keeps the organisation.
 * @throws Refusal `identity-not-found`, `identity-first`
 */
export async function separateIdentities(context: UserContext, kind: string): Promise<User> {
  const { db, user, now } = context
  const { organisationId: organisation } = user
  const actor = actorOf(user.identity)
  await transactFor(db, organisation, async (tx) => {
    const isOfKind = and(eq(identities.organisation, organisation), sql`${identities.kind} = ${kind}`)
    const found = await tx.select().from(identities).where(isOfKind).orderBy(identities.sub).for('update')
    const joined = found.filter(({ joinedAt }) => joinedAt !== null)
    if (found.length === 0) throw new Refusal('identity-not-found')
    if (joined.length === 0) throw new Refusal('identity-first')
    for (const { kind, sub } of joined) {
      await tx.update(identities).set({ organisation: randomUUID(), joinedAt: null }).where(isIdentity({ kind, sub }))
      await recordAudit(tx, now, { organisation, actor, action: 'identity.separated', subject: `${kind}:${sub}` })
    }
  })
  return await admitUser(context, user.identity)
}
