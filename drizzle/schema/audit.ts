import { sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  bigint,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uuid,
} from 'drizzle-orm/pg-core'
import { AUDIT_ACTIONS, type AuditAction } from './audit-actions.ts'
import { instant, oneOf } from './columns.ts'
import { IDENTITY_KINDS } from './directory.ts'

/**
 * The kinds of actors: a user, the service itself (maintenance, the settlement of a transfer), or an operator at the
 * dashboard.
 */
export const ACTOR_KINDS = [...IDENTITY_KINDS, 'service', 'operator'] as const
export type ActorKind = (typeof ACTOR_KINDS)[number]

/**
 * One entry for each action on a record: actor, subject and time. Append-only: a trigger refuses UPDATE, DELETE and
 * TRUNCATE, which the table's owner turns off to delete exported months. Entries outlive their subjects, hence no foreign
 * keys. They contain only ids: no names, addresses of people, amounts or secrets.
 */
export const auditLog = pgTable(
  'audit_log',
  {
    sequence: bigint('sequence', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    at: instant('at').notNull(),
    organisation: uuid('organisation'),
    actorKind: text('actor_kind', { enum: ACTOR_KINDS }).notNull(),
    actorSub: text('actor_sub').notNull(),
    action: text('action', { enum: AUDIT_ACTIONS }).notNull(),
    /** the id of a record, or a hash; the action implies its type */
    subjectId: text('subject_id').notNull(),
    /** the id of the request that caused it, which its caller may have chosen; null without one */
    requestId: text('request_id'),
    detail: jsonb('detail').$type<AuditDetail>().notNull().default({}),
  },
  (table) => [
    check('audit_log_actor', oneOf(table.actorKind, ACTOR_KINDS)),
    index('audit_log_newest').on(table.organisation, table.sequence.desc().nullsFirst()),
    index('audit_log_newest_of_action').on(table.action, table.sequence.desc().nullsFirst()).where(isRareAction(table)),
    // A record has few entries, and a hash takes a fifth of the space; a source of sign-ins may have many.
    index('audit_log_subject').using('hash', table.subjectId),
    index('audit_log_sign_ins')
      .on(table.subjectId, table.sequence)
      .where(sql`${table.action} in ('operator.admitted', 'operator.rejected')`),
    index('audit_log_mailed')
      .on(table.organisation, table.at)
      .where(sql`${table.action} in ('contractor.invited', 'contractor.mail-failed')`),
    index('audit_log_refused').on(table.actorSub, table.sequence).where(isRefusal(table)),
    index('audit_log_refused_of_organisation').on(table.organisation, table.sequence).where(isRefusal(table)),
    index('audit_log_refused_contractor')
      .on(sql`(${table.detail} ->> 'contractor')`, table.sequence)
      .where(isRefusal(table)),
    index('audit_log_refused_reason').on(sql`(${table.detail} ->> 'reason')`, table.sequence).where(isRefusal(table)),
    index('audit_log_actor').on(table.actorSub, table.sequence).where(isOfRareActor(table)),
    // A caller may repeat one X-Request-Id for ever: in a hash index, each insert would then walk a chain of pages.
    index('audit_log_request').on(table.requestId, table.sequence).where(sql`${table.requestId} is not null`),
  ],
)

/** The part of the service that writes an entry for each transfer. */
export const FREQUENT_ACTOR = 'settlement'

/**
 * The condition of the index of actors, which a query must repeat to use it. Entries of the frequent actor are found
 * without an index.
 */
export function isOfRareActor({ actorKind, actorSub }: { actorKind: AnyPgColumn; actorSub: AnyPgColumn }) {
  return sql`(${actorKind} <> 'service' or not ${oneOf(actorSub, [FREQUENT_ACTOR])})`
}

/** The most frequent actions. The index leaves them out: a list of them reads the log in its order. */
const FREQUENT_ACTIONS = ['payout.paid', 'transfer.sponsored'] as const satisfies AuditAction[]

function isRareAction({ action }: { action: AnyPgColumn }) {
  return sql`not ${oneOf(action, FREQUENT_ACTIONS)}`
}

function isRefusal({ action }: { action: AnyPgColumn }) {
  return sql`${action} = 'transfer.refused'`
}

/** Ids, statuses, field names, reasons and counts, and an operator's note. */
export type AuditDetail = Record<string, string | number | boolean | readonly string[]>

/**
 * The last acknowledgement of a condition of a record by an operator. The condition needs attention again once something
 * happens after `seen`. The audit log has all acknowledgements.
 */
export const acknowledgements = pgTable(
  'acknowledgements',
  {
    /** a key of the conditions that the overview lists */
    condition: text('condition').notNull(),
    /** the id of the record */
    subject: uuid('subject').notNull(),
    note: text('note').notNull(),
    /** the name that the operator gave at sign-in */
    operator: text('operator').notNull(),
    at: instant('at').notNull(),
    /** the last event of the condition that the operator had seen */
    seen: instant('seen').notNull(),
  },
  (table) => [primaryKey({ columns: [table.condition, table.subject] })],
)

/**
 * How many times the sponsor refused an account for one reason in one hour. The first refusal is a row of the audit
 * log. The others are only counted, so that refused requests cannot fill the log.
 */
export const refusals = pgTable(
  'refusals',
  {
    account: text('account').notNull(),
    /** UTC, YYYY-MM-DDTHH */
    hour: text('hour').notNull(),
    reason: text('reason').notNull(),
    count: integer('count').notNull().default(1),
    /** inner hash of the last refusal */
    lastHash: text('last_hash').notNull(),
    lastAt: instant('last_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.account, table.hour, table.reason] }),
    index('refusals_oldest').on(table.lastAt),
  ],
)
