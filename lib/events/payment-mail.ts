import { createHmac, timingSafeEqual } from 'node:crypto'
import { and, asc, eq, gt, inArray, isNotNull, isNull, lt, lte, max, or, sql } from 'drizzle-orm'
import { chores } from '#drizzle/schema/chores.ts'
import { contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { events } from '#drizzle/schema/events.ts'
import { mailedPayees, paymentMails } from '#drizzle/schema/mails.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { presentableName } from '#lib/directory/contractors/invite-mail.ts'
import { composeMail, type MailSettings, type Message, sendMail } from '#lib/directory/mail.ts'
import { chosenName } from '#lib/directory/organisations.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

/** What mails at a payment need of a service. */
export interface PaymentMails {
  db: Database
  mail: MailSettings
  /** the key of the tokens that unsubscribe, 32 bytes */
  secret: Uint8Array
  /** the page that a token opens, without the token at its end */
  page: string
}

/** The row of `chores` whose `after` is the number of the last event that was read for mails. */
const STATE = 'payment-mails'
const ROUND = 500
const MAILS = 50

/**
 * Mails contractors that they were paid, whose employers want that: at most one mail an hour and person, which names every payer
 * since the last one, and no amount. Only the email that the identity provider has verified for a linked contractor gets one. A
 * mail that could not be sent is tried again after an hour. Resolves to the number of mails.
 */
export async function mailPayees(context: PaymentMails): Promise<number> {
  while ((await queueMails(context.db)) > 0);
  let sent = 0
  for (const person of await claimPeople(context.db)) if (await mailPerson(context, person)) sent += 1
  return sent
}

/** Queues a mail for each new payment. Resolves to the number of events that it read. */
async function queueMails(db: Database): Promise<number> {
  return await transact(db, async (tx) => {
    // The first round begins with the newest event: payments before that are not mailed.
    const newest = sql`(select coalesce(max(${events.number}), 0) from ${events})`
    await tx
      .insert(chores)
      .values({ name: STATE, begunAt: sql`clock_timestamp()`, after: newest })
      .onConflictDoNothing()
    // A second process waits here for the first, and continues after its events.
    const [state] = await tx.select({ after: chores.after }).from(chores).where(eq(chores.name, STATE)).for('update')
    const after = state?.after ?? 0
    const [{ last = null } = {}] = await tx.select({ last: max(events.number) }).from(events)
    if (last === null || last <= after) return 0
    const paid = await tx
      .select({ number: events.number, payer: events.organisation, payee: events.payee })
      .from(events)
      .where(
        and(
          gt(events.number, after),
          lte(events.number, last),
          eq(events.type, 'payout.paid'),
          isNotNull(events.payee),
        ),
      )
      .orderBy(asc(events.number))
      .limit(ROUND)
    const own = identities
    const wanted = await tx
      .selectDistinct({ person: own.organisation, payer: contractors.organisation })
      .from(contractors)
      .innerJoin(organisations, eq(organisations.id, contractors.organisation))
      .innerJoin(own, and(eq(own.kind, contractors.linkedKind), eq(own.sub, contractors.linkedSub)))
      .leftJoin(mailedPayees, eq(mailedPayees.person, own.organisation))
      .where(
        and(
          inArray(
            contractors.id,
            paid.flatMap(({ payee }) => payee ?? []),
          ),
          eq(organisations.notifyPayees, true),
          or(isNull(mailedPayees.isMuted), eq(mailedPayees.isMuted, false)),
        ),
      )
    if (wanted.length > 0) {
      // A mail that is being sent just now forgets only what was queued before.
      const queuedAt = sql`clock_timestamp()`
      const rows = wanted.map((row) => ({ ...row, queuedAt }))
      const target = [paymentMails.person, paymentMails.payer]
      await tx.insert(paymentMails).values(rows).onConflictDoUpdate({ target, set: { queuedAt } })
    }
    // A full round may have left payments for the next one.
    const through = paid.length < ROUND ? last : (paid.at(-1)?.number ?? last)
    await tx.update(chores).set({ after: through, begunAt: sql`clock_timestamp()` }).where(eq(chores.name, STATE))
    return paid.length
  })
}

/** The people whose mail is due, each claimed for an hour. */
async function claimPeople(db: Database): Promise<string[]> {
  const due = await db
    .selectDistinct({ person: paymentMails.person })
    .from(paymentMails)
    .leftJoin(mailedPayees, eq(mailedPayees.person, paymentMails.person))
    .where(or(isNull(mailedPayees.mailedAt), lt(mailedPayees.mailedAt, sql`clock_timestamp() - interval '1 hour'`)))
    .limit(MAILS)
  if (due.length === 0) return []
  const mailedAt = sql`clock_timestamp()`
  const claimed = await db
    .insert(mailedPayees)
    .values(due.map(({ person }) => ({ person, mailedAt })))
    .onConflictDoUpdate({
      target: mailedPayees.person,
      set: { mailedAt },
      setWhere: or(
        isNull(mailedPayees.mailedAt),
        lt(mailedPayees.mailedAt, sql`clock_timestamp() - interval '1 hour'`),
      ),
    })
    .returning({ person: mailedPayees.person, isMuted: mailedPayees.isMuted })
  const muted = claimed.filter(({ isMuted }) => isMuted).map(({ person }) => person)
  if (muted.length > 0) await db.delete(paymentMails).where(inArray(paymentMails.person, muted))
  return claimed.filter(({ isMuted }) => !isMuted).map(({ person }) => person)
}

async function mailPerson({ db, mail, secret, page }: PaymentMails, person: string): Promise<boolean> {
  const isTheirs = eq(paymentMails.person, person)
  const rows = await db.select().from(paymentMails).where(isTheirs).orderBy(asc(paymentMails.queuedAt))
  const hasEmail = and(eq(identities.organisation, person), isNotNull(identities.email))
  const [to] = await db.select({ email: identities.email }).from(identities).where(hasEmail).limit(1)
  const newest = rows.at(-1)
  if (!newest) return false
  const isSent = and(isTheirs, lte(paymentMails.queuedAt, newest.queuedAt))
  if (!to?.email) {
    await db.delete(paymentMails).where(isSent)
    return false
  }
  const names = await Promise.all(rows.map(({ payer }) => chosenName(db, payer)))
  const payers = names.toSorted((one = '', other = '') => one.localeCompare(other, 'en'))
  const message = composePaid({ to: to.email, payers, unsubscribe: `${page}${mailToken(secret, person)}` })
  try {
    await sendMail(mail, message)
  } catch (error) {
    log('error', 'payment mail', { failure: describeFailure(error) })
    // The same address would be refused again.
    if (error instanceof Refusal && error.code === 'mail-refused') await db.delete(paymentMails).where(isSent)
    return false
  }
  await db.delete(paymentMails).where(isSent)
  return true
}

const LISTED = 5

/** Composes the mail. Organisation names are untrusted, so a name that looks like a link is omitted. */
export function composePaid(mail: {
  to: string
  payers: readonly (string | undefined)[]
  unsubscribe: string
}): Message {
  const names = mail.payers.map((name) => presentableName(name ?? '') ?? 'an organisation').slice(0, LISTED)
  const more = mail.payers.length - names.length
  const listed = new Intl.ListFormat('en').format([...names, ...(more > 0 ? [`${more} more`] : [])])
  return {
    ...composeMail({
      to: mail.to,
      subject: `You were paid by ${listed}`,
      paragraphs: [
        'Hello,',
        `You were paid by ${listed}. Only your wallet can read the amount: open it to see the payment.`,
        'You receive this email because an organisation that pays you has turned on payment notifications. To stop these emails, open:',
        mail.unsubscribe,
      ],
    }),
    unsubscribe: `${mail.unsubscribe}/stop`,
  }
}

const seal = (secret: Uint8Array, person: string) => createHmac('sha256', secret).update(`stop ${person}`).digest()

/** The token by which a person stops these mails: its id, and an HMAC-SHA-256 of it. */
export function mailToken(secret: Uint8Array, person: string): string {
  return `${person}.${seal(secret, person).toString('base64url')}`
}

/** The person that a token names; undefined if its HMAC is wrong. */
export function readMailToken(secret: Uint8Array, token: string): string | undefined {
  const [, person, given] = /^([0-9a-f-]{36})\.([\w-]{43})$/.exec(token) ?? []
  if (person === undefined || given === undefined) return undefined
  const [expected, actual] = [seal(secret, person), Buffer.from(given, 'base64url')]
  return actual.length === expected.length && timingSafeEqual(actual, expected) ? person : undefined
}

/** Stops mails at a payment to a person, from every organisation. */
export async function stopMails(db: Database, person: string): Promise<void> {
  await transact(db, async (tx) => {
    const isMuted = true
    const set = { isMuted }
    await tx.insert(mailedPayees).values({ person, isMuted }).onConflictDoUpdate({ target: mailedPayees.person, set })
    await tx.delete(paymentMails).where(eq(paymentMails.person, person))
  })
}
