import { and, eq, gt, inArray, isNotNull, isNull, lte, sql } from 'drizzle-orm'
import { identities } from '#drizzle/schema/directory.ts'
import { type DISABLED_REASONS, webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { composeMail, type Message, sendMail } from '#lib/directory/mail.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { auditedEndpoint, type Webhooks } from './webhooks.ts'

type DisabledReason = (typeof DISABLED_REASONS)[number]

const ACTOR: Actor = { kind: 'service', sub: 'webhooks' }

/** The database's time, also within a transaction: `now()` is the time at which the transaction began. */
export const CLOCK = sql`clock_timestamp()`

/** Disables an endpoint in the SQL transaction that gives up on its delivery, and holds its other deliveries. */
export async function disable(tx: Database, id: string, reason: DisabledReason, now: Date): Promise<void> {
  const [disabled] = await tx
    .update(webhooks)
    .set({ disabledAt: CLOCK, disabledReason: reason, noticeDue: CLOCK })
    .where(and(eq(webhooks.id, id), isNull(webhooks.disabledAt)))
    .returning({ organisation: webhooks.organisation, url: webhooks.url })
  if (!disabled) return
  const isWaiting = and(eq(webhookDeliveries.webhook, id), eq(webhookDeliveries.status, 'waiting'))
  await tx.update(webhookDeliveries).set({ status: 'held' }).where(isWaiting)
  const { organisation, url } = disabled
  const detail = { ...auditedEndpoint(url), reason }
  await recordAudit(tx, now, { organisation, actor: ACTOR, action: 'webhook.disabled', subject: id, detail })
}

/** Re-enables a disabled endpoint, and makes the deliveries that were held due. */
export async function enable(tx: Database, id: string, actor: Actor, now: Date): Promise<boolean> {
  const [enabled] = await tx
    .update(webhooks)
    .set({ disabledAt: null, disabledReason: null, noticeDue: null })
    .where(and(eq(webhooks.id, id), isNotNull(webhooks.disabledAt)))
    .returning({ organisation: webhooks.organisation, url: webhooks.url })
  if (!enabled) return false
  await tx.execute(sql`update ${webhookDeliveries} as delivery
    set status = 'waiting', attempts = 0, leased_until = null, due = case when not exists (
      select from ${webhookDeliveries} as earlier where earlier.webhook = delivery.webhook
        and earlier.batch = delivery.batch and earlier.event < delivery.event
        and earlier.status in ('waiting', 'held')) then ${CLOCK} end
    where delivery.webhook = ${id} and delivery.status = 'held'`)
  const { organisation, url } = enabled
  const detail = auditedEndpoint(url)
  await recordAudit(tx, now, { organisation, actor, action: 'webhook.enabled', subject: id, detail })
  return true
}

/** Makes deliveries due that wait for their next attempt: the endpoint works again. */
export async function hasten(db: Database, id: string): Promise<void> {
  const { webhook, status, due } = webhookDeliveries
  const isPausing = and(eq(webhook, id), eq(status, 'waiting'), gt(due, CLOCK))
  await db.update(webhookDeliveries).set({ due: CLOCK }).where(isPausing)
}

/** How long mailing the employer is retried (days). The dashboard lists the endpoint until it is enabled or deleted. */
const TOLD_WITHIN_DAYS = 1

/** Mails the employers of disabled endpoints, at least once each. A failed mail is retried after ten minutes. */
export async function sendNotices(context: Webhooks): Promise<void> {
  const db = await context.database()
  const isDue = lte(webhooks.noticeDue, CLOCK)
  const one = db.select({ id: webhooks.id }).from(webhooks).where(isDue).limit(1).for('update', { skipLocked: true })
  for (;;) {
    const [notice] = await db
      .update(webhooks)
      .set({ noticeDue: sql`${CLOCK} + interval '10 minutes'` })
      .where(and(inArray(webhooks.id, one), isDue))
      .returning({
        id: webhooks.id,
        organisation: webhooks.organisation,
        url: webhooks.url,
        reason: webhooks.disabledReason,
        isLate: sql<boolean>`${webhooks.disabledAt} < ${CLOCK} - make_interval(days => ${TOLD_WITHIN_DAYS})`,
      })
    if (!notice) return
    if (notice.isLate || (await tell(context, db, notice)))
      await db.update(webhooks).set({ noticeDue: null }).where(eq(webhooks.id, notice.id))
  }
}

interface Notice {
  organisation: string
  url: string
  reason: DisabledReason | null
}

/** Mails the verified emails of an organisation. Resolves to whether there is nothing left to try. */
async function tell({ mail }: Webhooks, db: Database, { organisation, url, reason }: Notice): Promise<boolean> {
  if (!mail || reason === null) return true
  const isOfOrganisation = and(eq(identities.organisation, organisation), isNotNull(identities.email))
  const users = await db.select({ email: identities.email }).from(identities).where(isOfOrganisation)
  const sent = users.map(({ email }) => sendMail(mail, composeNotice(email ?? '', new URL(url).host, reason)))
  const failed = (await Promise.allSettled(sent)).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  for (const failure of failed) log('error', 'mail', { failure: describeFailure(failure) })
  return failed.every((failure) => failure instanceof Refusal && failure.code === 'mail-refused')
}

const WHY: Record<DisabledReason, string> = {
  gone: 'It responded with status 410 (Gone), which asks us to send no more events.',
  failing: 'An event could not be delivered in 14 attempts over two days.',
}

function composeNotice(to: string, host: string, reason: DisabledReason): Message {
  return composeMail({
    to,
    subject: 'A webhook of your payroll was disabled',
    paragraphs: [
      'Hello,',
      `The webhook at ${host} gets no more events. ${WHY[reason]}`,
      'Once the endpoint works again, have your application send it a test event (POST /webhooks/{id}/test). A successful test enables the webhook again and sends the events that it missed, except the one that failed: redeliver that one yourself (POST /webhooks/{id}/deliveries/{delivery}/redeliver). If you no longer need the webhook, delete it.',
    ],
  })
}
