import { sql } from 'drizzle-orm'
import { bigint, check, index, integer, pgTable, text, unique, uuid } from 'drizzle-orm/pg-core'
import { instant, newest, oneOf, sequence } from './columns.ts'
import { organisations } from './directory.ts'

/** Why an endpoint gets no more events: it responded with 410, or an event could not be delivered in all attempts. */
export const DISABLED_REASONS = ['gone', 'failing'] as const

/** An endpoint of an organisation's own system that events are sent to. Its secret is derived, and never stored. */
export const webhooks = pgTable(
  'webhooks',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    sequence: sequence(),
    organisation: uuid('organisation')
      .notNull()
      .references(() => organisations.id),
    url: text('url').notNull(),
    /** the types of events that it gets; null for all */
    types: text('types').array(),
    /** of the service's key from which its secret is derived: a process with another key sends it nothing */
    keyId: text('key_id').notNull(),
    /** incremented when the secret is rotated */
    secretVersion: integer('secret_version').notNull().default(1),
    /** until when requests are also signed with the secret before */
    previousUntil: instant('previous_until'),
    /** the number of the last event that has a delivery, if it is of a type that the endpoint gets */
    cursor: bigint('cursor', { mode: 'number' }).notNull(),
    disabledAt: instant('disabled_at'),
    disabledReason: text('disabled_reason', { enum: DISABLED_REASONS }),
    /** when the employer is next mailed that it is disabled; null if there is nothing to tell */
    noticeDue: instant('notice_due'),
    createdAt: instant('created_at').notNull().defaultNow(),
  },
  (table) => [
    check('webhooks_disabled', sql`(${table.disabledAt} is null) = (${table.disabledReason} is null)`),
    check('webhooks_disabled_reason', oneOf(table.disabledReason, DISABLED_REASONS)),
    index('webhooks_of_organisation').on(table.organisation),
    index('webhooks_disabled_at').on(table.disabledAt).where(sql`${table.disabledAt} is not null`),
    index('webhooks_notice').on(table.noticeDue).where(sql`${table.noticeDue} is not null`),
  ],
)

/** `held` while its endpoint is disabled; `failed` once no attempt follows. */
export const DELIVERY_STATUSES = ['waiting', 'held', 'delivered', 'failed'] as const

/** Why an attempt failed. */
export const DELIVERY_ERRORS = [
  /** the response's status is not 2xx */
  'status',
  'redirect',
  /** no status of a response within the time limit */
  'timeout',
  /** the host has an address that is not public */
  'address-refused',
  /** the certificate is invalid, or the server does not speak TLS */
  'tls',
  'unreachable',
  /** the event was dropped before it was delivered */
  'event-gone',
] as const

/** An event that an endpoint gets. A host leases it for an attempt; a lease left by a process that ended expires. */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    sequence: sequence(),
    webhook: uuid('webhook')
      .notNull()
      .references(() => webhooks.id, { onDelete: 'cascade' }),
    /** the number of the event */
    event: bigint('event', { mode: 'number' }).notNull(),
    /** as the endpoint gets it */
    eventId: text('event_id').notNull(),
    type: text('type').notNull(),
    /** the events of a batch are delivered in their order */
    batch: uuid('batch'),
    status: text('status', { enum: DELIVERY_STATUSES }).notNull().default('waiting'),
    /** counted when an attempt begins */
    attempts: integer('attempts').notNull().default(0),
    /** when the next attempt may begin; null while it waits for an earlier event of its batch */
    due: instant('due'),
    leasedUntil: instant('leased_until'),
    attemptedAt: instant('attempted_at'),
    endedAt: instant('ended_at'),
    /** of the last attempt */
    responseStatus: integer('response_status'),
    /** the beginning of the last response's body */
    response: text('response'),
    error: text('error', { enum: DELIVERY_ERRORS }),
    createdAt: instant('created_at').notNull().defaultNow(),
  },
  (table) => [
    unique('webhook_deliveries_event').on(table.webhook, table.event),
    check('webhook_deliveries_status', oneOf(table.status, DELIVERY_STATUSES)),
    check('webhook_deliveries_error', oneOf(table.error, DELIVERY_ERRORS)),
    index('webhook_deliveries_due').on(table.webhook, table.due, table.event).where(sql`${table.status} = 'waiting'`),
    index('webhook_deliveries_in_order')
      .on(table.webhook, table.batch, table.event)
      .where(sql`${table.status} in ('waiting', 'held')`),
    index('webhook_deliveries_leased').on(table.leasedUntil).where(sql`${table.leasedUntil} is not null`),
    index('webhook_deliveries_newest').on(table.webhook, ...newest(table)),
    index('webhook_deliveries_oldest').on(table.createdAt),
  ],
)
