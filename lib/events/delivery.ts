import { and, eq, isNull, sql } from 'drizzle-orm'
import { events } from '#drizzle/schema/events.ts'
import { webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import { nameVersion } from '#lib/config/version.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { CLOCK, disable, sendNotices } from './disabling.ts'
import { presentEvent } from './event.ts'
import { fanOut } from './fan-out.ts'
import { postTo, type Reply } from './post.ts'
import { keyIdOf, signedHeaders } from './signature.ts'
import type { Webhooks } from './webhooks.ts'

/** Pauses (s) between attempts grow from the first to the last. After the last attempt the endpoint is disabled. */
export const ATTEMPTS = 14
const FIRST_PAUSE = 5
const LAST_PAUSE = 86_400

/** The time limit of an attempt is shorter. */
const LEASE_SECONDS = 30

/** How many attempts run at once: in this process, of one organisation, and of one endpoint. */
export const AT_ONCE = 32
const OF_ORGANISATION = 4
const OF_ENDPOINT = 2

/** The pause (s) after the n-th attempt. */
export const pauseAfter = (attempt: number): number =>
  Math.round(FIRST_PAUSE * (LAST_PAUSE / FIRST_PAUSE) ** ((attempt - 1) / (ATTEMPTS - 2)))

/** The condition for deliveries, as `delivery`, whose time has come and that no process is attempting. */
export const IS_DUE = sql`delivery.status = 'waiting' and delivery.due <= ${CLOCK}
  and (delivery.leased_until is null or delivery.leased_until <= ${CLOCK})`

/** A delivery that this process attempts. `attempts` includes this attempt, so a later lease by another process changes it. */
type Leased = Pick<typeof webhookDeliveries.$inferSelect, 'id' | 'webhook' | 'event' | 'batch' | 'attempts'>

/** How many endpoints' next deliveries a lease chooses from: more than other processes can lease at the same moment. */
const CANDIDATES = 32

/**
 * Leases the next delivery: that of the organisation with the fewest attempts in progress, and of these the oldest. An event of a
 * batch waits for the earlier ones that its endpoint gets. Reads the first delivery of each endpoint that is not busy, so a long
 * queue of one organisation costs the others nothing.
 */
async function leaseDelivery(db: Database, secret: Uint8Array): Promise<Leased | undefined> {
  const busy = sql`(select hook.organisation, delivery.webhook from ${webhookDeliveries} as delivery
    join ${webhooks} as hook on hook.id = delivery.webhook where delivery.leased_until > ${CLOCK})`
  const candidates = sql`(select first.id from ${webhooks} as hook cross join lateral (
      select delivery.id, delivery.due, delivery.event from ${webhookDeliveries} as delivery
      where delivery.webhook = hook.id and ${IS_DUE}
        and not exists (select from ${webhookDeliveries} as earlier where earlier.webhook = delivery.webhook
          and earlier.batch = delivery.batch and earlier.event < delivery.event and earlier.status = 'waiting')
      order by delivery.due, delivery.event limit 1) as first
    where hook.disabled_at is null and hook.key_id = ${keyIdOf(secret)}
      and (select count(*) < ${OF_ORGANISATION} and count(*) filter (where busy.webhook = hook.id) < ${OF_ENDPOINT}
        from busy where busy.organisation = hook.organisation)
    order by (select count(*) from busy where busy.organisation = hook.organisation), first.due, first.event
    limit ${CANDIDATES})`
  const next = sql`(with busy as materialized ${busy}
    select delivery.id from ${webhookDeliveries} as delivery join ${webhooks} as owner on owner.id = delivery.webhook
    where delivery.id in ${candidates} and ${IS_DUE}
    order by (select count(*) from busy where busy.organisation = owner.organisation), delivery.due, delivery.event
    limit 1 for no key update of delivery skip locked)`
  const [leased] = await db
    .update(webhookDeliveries)
    .set({
      attempts: sql`${webhookDeliveries.attempts} + 1`,
      attemptedAt: CLOCK,
      leasedUntil: sql`${CLOCK} + make_interval(secs => ${LEASE_SECONDS})`,
    })
    .where(sql`${webhookDeliveries.id} = ${next}`)
    .returning()
  return leased
}

/** Sends a leased event, and records what came back. After a crash in between, it is sent again with the same id. */
async function attempt(context: Webhooks, leased: Leased, stop: AbortSignal | undefined): Promise<void> {
  const db = await context.database()
  const [row] = await db
    .select({ hook: webhooks, event: events, isRotating: IS_ROTATING })
    .from(webhooks)
    .innerJoin(events, eq(events.number, leased.event))
    .where(eq(webhooks.id, leased.webhook))
  if (!row) return await settle(context, leased, { error: 'event-gone' })
  const { id, url, secretVersion: version } = row.hook
  const event = presentEvent(row.event)
  const reply = await sendMessage(context, { id, url, version, isRotating: row.isRotating }, { ...event, stop })
  if (stop?.aborted && reply.error === 'timeout') return await giveBack(db, leased)
  await settle(context, leased, reply)
}

export const IS_ROTATING = sql<boolean>`coalesce(${webhooks.previousUntil} > ${CLOCK}, false)`

/** Posts an event with its signatures. */
export async function sendMessage(
  context: Webhooks,
  { url, ...secret }: { id: string; url: string; version: number; isRotating: boolean },
  { stop, ...event }: { id: string; type: string; createdAt: string; data: object; stop?: AbortSignal | undefined },
): Promise<Reply> {
  const body = JSON.stringify(event)
  const signed = signedHeaders(context.secret, secret, { id: event.id, body, at: context.now() })
  const agent = `confidential-payroll/${nameVersion()}`
  const headers = { 'content-type': 'application/json', 'user-agent': agent, ...signed }
  return await postTo(url, { rules: context, headers, body, stop })
}

/** The condition for a delivery that no other process has begun to attempt since. */
const isLeased = ({ id, attempts }: Leased) =>
  and(eq(webhookDeliveries.id, id), eq(webhookDeliveries.attempts, attempts), eq(webhookDeliveries.status, 'waiting'))

/** Ends the lease of a process that is stopping, so that another one can attempt the delivery at once. */
async function giveBack(db: Database, leased: Leased): Promise<void> {
  const before = { attempts: leased.attempts - 1, leasedUntil: null }
  await db.update(webhookDeliveries).set(before).where(isLeased(leased))
}

async function settle(context: Webhooks, leased: Leased, reply: Reply): Promise<void> {
  const { error = null, status: responseStatus = null, text: response = null } = reply
  const isGone = responseStatus === 410
  const isLast = error === null || error === 'event-gone' || isGone || leased.attempts >= ATTEMPTS
  const pause = Math.max(pauseAfter(leased.attempts), Math.min(reply.retryAfter ?? 0, LAST_PAUSE))
  const next = isLast
    ? ({ status: error === null ? 'delivered' : 'failed', endedAt: CLOCK } as const)
    : { due: sql`${CLOCK} + make_interval(secs => ${pause})` }
  await transact(await context.database(), async (tx) => {
    // New deliveries of the endpoint are made before or after, so that none waits for this one in vain.
    await tx.select({ id: webhooks.id }).from(webhooks).where(eq(webhooks.id, leased.webhook)).for('no key update')
    const [ended] = await tx
      .update(webhookDeliveries)
      .set({ error, responseStatus, response, leasedUntil: null, ...next })
      .where(isLeased(leased))
      .returning({ id: webhookDeliveries.id })
    if (!ended || !isLast) return
    await wakeNext(tx, leased)
    if (error === null || error === 'event-gone') return
    await disable(tx, leased.webhook, isGone ? 'gone' : 'failing', context.now())
  })
}

/** Makes the next event of the batch due. */
async function wakeNext(tx: Database, { webhook, batch, event }: Leased): Promise<void> {
  if (batch === null) return
  const isNext = sql`${webhookDeliveries.id} = (select later.id from ${webhookDeliveries} as later
    where later.webhook = ${webhook} and later.batch = ${batch} and later.event > ${event} and later.status = 'waiting'
    order by later.event limit 1)`
  await tx
    .update(webhookDeliveries)
    .set({ due: CLOCK })
    .where(and(isNext, isNull(webhookDeliveries.due)))
}

interface AttemptOptions {
  /** how long new attempts are begun */
  maxMs?: number
  /** how many attempts this process makes now, for calls at the same time to share */
  slots?: { busy: number }
  stop?: AbortSignal
}

/**
 * Creates the deliveries of new events and attempts those that are due. Each event is delivered at least once. Any number of
 * processes may run it at once. Resolves to the number of attempts.
 */
export async function deliverDue(
  context: Webhooks,
  { maxMs = 20_000, ...options }: AttemptOptions = {},
): Promise<number> {
  const end = performance.now() + maxMs
  const failure = await fanOut(context, () => performance.now() >= end).catch((error: unknown) => error)
  const count = await attemptDue(context, { ...options, maxMs: end - performance.now() })
  if (failure !== undefined) throw failure
  return count
}

/** Makes the attempts that are due, and mails the employers of endpoints that were disabled. */
export async function attemptDue(
  context: Webhooks,
  { maxMs = Number.POSITIVE_INFINITY, slots = { busy: 0 }, stop }: AttemptOptions,
): Promise<number> {
  const end = performance.now() + maxMs
  const isOver = () => stop?.aborted === true || performance.now() >= end
  const db = await context.database()
  let count = 0
  const work = async () => {
    if (slots.busy >= AT_ONCE) return
    slots.busy += 1
    try {
      while (!isOver()) {
        const leased = await leaseDelivery(db, context.secret)
        if (!leased) return
        count += 1
        // Another one may be due, too.
        start(work())
        await attempt(context, leased, stop)
      }
    } finally {
      slots.busy -= 1
    }
  }
  const begun: Promise<unknown>[] = []
  const failures: unknown[] = []
  const start = (task: Promise<void>) => begun.push(task.catch((error: unknown) => failures.push(error)))
  start(work())
  // `begun` grows during this loop.
  for (const task of begun) await task
  await sendNotices(context)
  if (failures.length > 0) throw failures[0]
  return count
}
