import { sql } from 'drizzle-orm'
import {
  check,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { IDENTITY_KINDS } from './directory.ts'

/** A job is `running` until every item has ended; `failed` if one of them did. */
export const JOB_STATUSES = ['running', 'completed', 'failed'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

/**
 * The life of an item. `queued`: nobody's yet. `taken`: a channel is building its transfer. `signed`: that transfer is
 * stored, and it alone may pay the item until it is settled or can no longer come. The rest is final.
 */
export const ITEM_STATUSES = ['queued', 'taken', 'signed', 'paid', 'failed'] as const
export type ItemStatus = (typeof ITEM_STATUSES)[number]

/** What keeps a channel from paying: `balance` some items, the others all of them. */
export const CHANNEL_PROBLEMS = ['account', 'registration', 'sequence', 'balance', 'history'] as const
export type ChannelProblem = (typeof CHANNEL_PROBLEMS)[number]

const moment = (name: string) => timestamp(name, { withTimezone: true, mode: 'date', precision: 3 })

/** A batch that the relay pays. No amount is anywhere in it but sealed to the relay. */
export const batchJobs = pgTable(
  'batch_jobs',
  {
    id: uuid('id').primaryKey(),
    /** whose job it is */
    userKind: text('user_kind', { enum: IDENTITY_KINDS }).notNull(),
    userSub: text('user_sub').notNull(),
    status: text('status', { enum: JOB_STATUSES }).notNull().default('running'),
    /** why the first of the failed items failed */
    error: text('error'),
    createdAt: moment('created_at').notNull(),
    endedAt: moment('ended_at'),
  },
  (table) => [
    check('batch_jobs_status', sql`${table.status} in ('running', 'completed', 'failed')`),
    check('batch_jobs_ended', sql`(${table.status} = 'running') = (${table.endedAt} is null)`),
    uniqueIndex('batch_jobs_one_running').on(table.userKind, table.userSub).where(sql`${table.status} = 'running'`),
    index('batch_jobs_newest').on(table.createdAt),
  ],
)

/** One transfer of a job. */
export const batchItems = pgTable(
  'batch_items',
  {
    job: uuid('job').notNull(),
    /** position in the job's amounts, from 0 */
    position: integer('position').notNull(),
    status: text('status', { enum: ITEM_STATUSES }).notNull().default('queued'),
    /** G… or C…; null: whichever other channel the paying one picks */
    recipient: text('recipient'),
    /** the amount as a JWE for the relay; gone when the item has ended */
    sealedAmount: text('sealed_amount'),
    /** whose quota of the sponsor it counts against */
    quotaAccount: text('quota_account').notNull(),
    /** the channel that has it, or had it last */
    channel: text('channel'),
    /** rises with every taking: what was begun under an earlier number has no more say */
    attempt: integer('attempt').notNull().default(0),
    /** channels that cannot pay this very item */
    unable: text('unable').array().notNull().default(sql`'{}'::text[]`),
    /** hash of the signed transfer, 64 hex digits; stored before the transfer is given away, replaced only by a fresh one */
    innerHash: text('inner_hash'),
    /** that transfer, base64 XDR; gone when the item has ended */
    signedXdr: text('signed_xdr'),
    /** the channel's opening once that transfer has applied, as a JWE for the relay */
    sealedOpening: text('sealed_opening'),
    /** the hash that stands on the ledger, or the last that was tried */
    hash: text('hash'),
    error: text('error'),
    queuedAt: moment('queued_at').notNull(),
    /** given to the sponsor, for the first time */
    sentAt: moment('sent_at'),
    settledAt: moment('settled_at'),
  },
  (table) => [
    primaryKey({ columns: [table.job, table.position] }),
    foreignKey({ name: 'batch_items_job', columns: [table.job], foreignColumns: [batchJobs.id] }),
    check('batch_items_status', sql`${table.status} in ('queued', 'taken', 'signed', 'paid', 'failed')`),
    check('batch_items_settled', sql`(${table.status} in ('paid', 'failed')) = (${table.settledAt} is not null)`),
    check('batch_items_sealed', sql`(${table.status} in ('paid', 'failed')) = (${table.sealedAmount} is null)`),
    check(
      'batch_items_signed',
      sql`(${table.status} = 'signed') = (${table.signedXdr} is not null) and (${table.status} = 'signed') = (${table.sealedOpening} is not null)`,
    ),
    check(
      'batch_items_channel',
      sql`${table.status} not in ('taken', 'signed') or (${table.channel} is not null and (${table.status} = 'taken' or ${table.innerHash} is not null))`,
    ),
    check('batch_items_paid', sql`${table.status} <> 'paid' or ${table.hash} is not null`),
    uniqueIndex('batch_items_one_per_channel').on(table.channel).where(sql`${table.status} in ('taken', 'signed')`),
    index('batch_items_waiting').on(table.queuedAt, table.job, table.position).where(sql`${table.status} = 'queued'`),
    index('batch_items_failed').on(table.settledAt.desc().nullsFirst()).where(sql`${table.status} = 'failed'`),
  ],
)

/** What a relay knows of a channel: its balance, readable by relays alone, and what is wrong with it. */
export const relayChannels = pgTable(
  'relay_channels',
  {
    token: text('token').notNull(),
    address: text('address').notNull(),
    /** the balance at a place in the ledger's events, as a JWE for the relay */
    sealedBalance: text('sealed_balance'),
    /** what opens the spendable commitment now, as a JWE for the relay */
    sealedOpening: text('sealed_opening'),
    problem: text('problem', { enum: CHANNEL_PROBLEMS }),
    /** when a relay last said that it has the channel's key */
    seenAt: moment('seen_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.token, table.address] }),
    check(
      'relay_channels_problem',
      sql`${table.problem} in ('account', 'registration', 'sequence', 'balance', 'history')`,
    ),
  ],
)
