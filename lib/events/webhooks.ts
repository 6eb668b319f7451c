import { and, count, desc, eq, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import { organisations } from '#drizzle/schema/directory.ts'
import { events } from '#drizzle/schema/events.ts'
import type { RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import { DISABLED_REASONS, webhooks } from '#drizzle/schema/webhooks.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { type IdempotentRequest, transactOnce } from '#lib/db/idempotency.ts'
import { isId } from '#lib/directory/ids.ts'
import type { MailSettings } from '#lib/directory/mail.ts'
import { refuseDissolved, requireMember } from '#lib/directory/organisations.ts'
import { columnsOf, presentAs } from '#lib/directory/presentation.ts'
import type { Employer } from '#lib/directory/users.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr, containsSecretSeed } from '#lib/text/plain-text.ts'
import { type DestinationRules, MAX_URL, problemOfDestination } from './destination.ts'
import { EVENT_TYPES } from './event.ts'
import { keyIdOf, webhookSecret } from './signature.ts'

/** What sends events to endpoints. */
export interface Webhooks extends DestinationRules {
  /** the key of the endpoints' secrets, 32 bytes */
  secret: Uint8Array
  mail: MailSettings | undefined
  database(): Promise<Database>
  now(): Date
}

/** The context of the verbs. */
export interface WebhooksContext {
  db: Database
  employer: Employer
  now: Date
  service: { webhooks: Webhooks }
  /** if the request has an Idempotency-Key */
  once?: IdempotentRequest | undefined
}

/** The maximum number of endpoints of an organisation. */
export const MAX_WEBHOOKS = 10

const INVALID = `must be an absolute URL of at most ${MAX_URL} characters`

export const newWebhook = z.object({
  url: z
    .string({ error: absentOr(INVALID) })
    .max(MAX_URL, INVALID)
    .refine((text) => !/[\p{Cc}\s]/u.test(text) && text.isWellFormed() && !containsSecretSeed(text), INVALID)
    .meta({
      description: 'https, with a host that has public addresses only, and neither credentials nor a fragment',
      minLength: 1,
      maxLength: MAX_URL,
    }),
  types: z
    .array(z.enum(EVENT_TYPES, `must be one of ${EVENT_TYPES.join(', ')}`))
    .min(1, 'must name at least one type')
    .max(EVENT_TYPES.length, 'names a type twice')
    .optional()
    .meta({ description: 'the types of events that it gets; by default all, including those that later versions add' }),
})

export const webhookShape = z.object({
  id: z.string(),
  url: z.string(),
  types: z.array(z.string()).optional().meta({ description: 'absent: all' }),
  disabledAt: z.iso.datetime().optional().meta({ description: 'when it was disabled' }),
  disabledReason: z.enum(DISABLED_REASONS).optional().meta({
    description: '`gone`: it responded with 410. `failing`: an event could not be delivered in all attempts',
  }),
  previousUntil: z.iso.datetime().optional().meta({
    description: 'until when requests are also signed with the secret before the last rotation',
  }),
  secretVoid: z
    .literal(true)
    .optional()
    .meta({ description: 'the service has another key now: it gets no events until its secret is rotated' }),
  createdAt: z.iso.datetime(),
})
export const webhooksShape = z.object({ webhooks: z.array(webhookShape) })
export const secretWebhookShape = webhookShape.extend({
  secret: z.string().meta({ description: 'verifies its requests: shown only now' }),
})

const COLUMNS = { ...columnsOf(webhooks, webhookShape), keyId: webhooks.keyId, version: webhooks.secretVersion }

type Row = Pick<typeof webhooks.$inferSelect, Exclude<keyof typeof COLUMNS, 'version'>> & { version: number }

const presentRow = presentAs(webhookShape)

const present = ({ secret }: Webhooks, row: Row) =>
  presentRow({ ...row, secretVoid: row.keyId === keyIdOf(secret) ? null : true })

const presentWithSecret = ({ webhooks }: WebhooksContext['service'], row: Row) => ({
  ...present(webhooks, row),
  secret: webhookSecret(webhooks.secret, row),
})

/** What the audit log says of an endpoint: the rest of its URL may be a secret. */
export const auditedEndpoint = (url: string) => ({ host: new URL(url).host })

/** The condition for an organisation's endpoint. */
export const ownWebhook = ({ organisation }: Employer, id: string): SQL | undefined =>
  and(eq(webhooks.organisation, organisation), isId(id) ? eq(webhooks.id, id) : sql`false`)

export const webhookNotFound = () => new Refusal('webhook-not-found')

/** What is remembered of a request that has shown a secret. */
const refer = ({ id, version }: Row) => ({ ids: [id], version })

/** @throws Refusal `url-invalid`, `webhooks-full`, `organisation-dissolved` */
export async function createWebhook(
  context: WebhooksContext,
  { url, types }: z.output<typeof newWebhook>,
): Promise<z.output<typeof secretWebhookShape>> {
  const { employer, now, service } = context
  const problem = await problemOfDestination(service.webhooks, url)
  if (problem !== undefined) throw new Refusal('url-invalid', `url ${problem}`)
  const { organisation } = employer
  const isOwn = eq(webhooks.organisation, organisation)
  const create = async (tx: Database) => {
    const isThis = eq(organisations.id, organisation)
    await tx.select({ id: organisations.id }).from(organisations).where(isThis).for('no key update')
    await requireMember(tx, employer)
    const [existing] = await tx.select({ count: count() }).from(webhooks).where(isOwn)
    if ((existing?.count ?? 0) >= MAX_WEBHOOKS) throw new Refusal('webhooks-full')
    // It gets what happens from now on.
    const cursor = sql`(select coalesce(max(${events.number}), 0) from ${events})`
    const keyId = keyIdOf(service.webhooks.secret)
    const row = { organisation, url, types: types ? [...new Set(types)] : null, keyId, cursor, createdAt: now }
    const [webhook] = await tx.insert(webhooks).values(row).returning(COLUMNS)
    if (!webhook) throw new Error('the insert returned no row')
    const detail = auditedEndpoint(url)
    await recordAudit(tx, now, { ...employer, action: 'webhook.created', subject: webhook.id, detail })
    return webhook
  }
  const created = await transactOnce(context, organisation, { work: create, refer }).catch(refuseDissolved)
  return presentWithSecret(service, created)
}

/**
 * Presents the endpoint again that a request has added or rotated, with the secret that it got then.
 * @throws Refusal `webhook-not-found` if it was deleted
 */
export async function presentCreatedWebhook(
  { db, employer, service }: WebhooksContext,
  { ids: [id = ''], version = 1 }: RecordedOutcome,
) {
  const [row] = await db.select(COLUMNS).from(webhooks).where(ownWebhook(employer, id))
  if (!row) throw webhookNotFound()
  return presentWithSecret(service, { ...row, version })
}

export async function listWebhooks({ db, employer, service }: WebhooksContext) {
  const { organisation, sequence } = webhooks
  const rows = await db
    .select(COLUMNS)
    .from(webhooks)
    .where(eq(organisation, employer.organisation))
    .orderBy(desc(sequence))
  return rows.map((row) => present(service.webhooks, row))
}

/**
 * Deletes an endpoint with its deliveries.
 * @throws Refusal `webhook-not-found`
 */
export async function removeWebhook({ db, employer, now }: WebhooksContext, id: string): Promise<{ id: string }> {
  return await transactFor(db, employer.organisation, async (tx) => {
    const [removed] = await tx.delete(webhooks).where(ownWebhook(employer, id)).returning({ url: webhooks.url })
    if (!removed) throw webhookNotFound()
    const detail = auditedEndpoint(removed.url)
    await recordAudit(tx, now, { ...employer, action: 'webhook.removed', subject: id, detail })
    return { id }
  })
}

/**
 * Gives an endpoint a new secret. The one before stays valid for a day, the one before that is void at once.
 * @throws Refusal `webhook-not-found`
 */
export async function rotateSecret(context: WebhooksContext, id: string) {
  const { employer, now, service } = context
  const keyId = keyIdOf(service.webhooks.secret)
  const rotate = async (tx: Database) => {
    const [row] = await tx
      .update(webhooks)
      .set({
        secretVersion: sql`${webhooks.secretVersion} + 1`,
        // The secret before belongs to another key if that has changed.
        previousUntil: sql`case when ${webhooks.keyId} = ${keyId} then clock_timestamp() + interval '1 day' end`,
        keyId,
      })
      .where(ownWebhook(employer, id))
      .returning(COLUMNS)
    if (!row) throw webhookNotFound()
    const detail = auditedEndpoint(row.url)
    await recordAudit(tx, now, { ...employer, action: 'webhook.rotated', subject: id, detail })
    return row
  }
  return presentWithSecret(service, await transactOnce(context, employer.organisation, { work: rotate, refer }))
}
