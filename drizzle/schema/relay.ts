import { type AnyColumn, sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  bigint,
  boolean,
  check,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { instant, newest, oneOf, sequence } from './columns.ts'
import { batches, IDENTITY_KINDS, payouts } from './directory.ts'

/** A job or a run is `running` until every item has ended; `failed` if one of them did. */
export const JOB_STATUSES = ['running', 'completed', 'failed'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

/**
 * The states of an item. `queued`: it has no channel. `taken`: its transfer is being built. `signed`: that transfer is
 * stored, and no other may pay the item until its outcome is known. The others are final. `unknown`: the ledger's
 * history no longer reaches back far enough to tell whether the item was paid. `skipped`: the
 * payout of a run was canceled, or paid by another transfer.
 */
export const ITEM_STATUSES = ['queued', 'taken', 'signed', 'paid', 'failed', 'unknown', 'skipped'] as const
export type ItemStatus = (typeof ITEM_STATUSES)[number]

/**
 * The problems that prevent a channel from paying. `balance`: its balance is zero. `moved`: the ledger applied
 * transactions that this database does not have, as after a restore from a backup; only an operator releases it.
 */
export const CHANNEL_PROBLEMS = ['account', 'registration', 'sequence', 'balance', 'history', 'moved'] as const
export type ChannelProblem = (typeof CHANNEL_PROBLEMS)[number]

/**
 * Why a channel is not released. `transfer-open`: a transfer signed before the restore is still open. `rpc-lags`: the
 * RPC's account is older than the move, or its events end below the ledger that showed the sequence number. `failed`: the
 * relay's log says why.
 */
export const RELEASE_REFUSALS = [
  'unknown-channel',
  'not-moved',
  'transfer-open',
  'history-too-short',
  'rpc-lags',
  'failed',
] as const
export type ReleaseRefusal = (typeof RELEASE_REFUSALS)[number]

/**
 * What the relay pays: a job from its own balances, or a run, which is a batch that the employer has delegated. The amounts
 * are stored sealed to the relay.
 */
export const batchJobs = pgTable(
  'batch_jobs',
  {
    id: uuid('id').primaryKey(),
    sequence: sequence(),
    /** the user who started the job */
    userKind: text('user_kind', { enum: IDENTITY_KINDS }).notNull(),
    userSub: text('user_sub').notNull(),
    /** thumbprint of the key that the amounts are sealed to; the queue of the relays with that key is named after it */
    relayKey: text('relay_key').notNull(),
    /** the batch that a run pays; null for a job */
    batch: uuid('batch').references(() => batches.id),
    /** the manifest of a run, as the employer has signed it; each relay checks both before it pays */
    manifest: text('manifest'),
    /** base64 */
    signature: text('signature'),
    /** UTC day whose quota a run counts against with all its items, YYYY-MM-DD */
    quotaDay: text('quota_day'),
    status: text('status', { enum: JOB_STATUSES }).notNull().default('running'),
    /** the error of the first failed item */
    error: text('error'),
    createdAt: instant('created_at').notNull(),
    endedAt: instant('ended_at'),
  },
  (table) => [
    check('batch_jobs_status', oneOf(table.status, JOB_STATUSES)),
    check('batch_jobs_ended', sql`(${table.status} = 'running') = (${table.endedAt} is null)`),
    check(
      'batch_jobs_run',
      sql`num_nulls(${table.batch}, ${table.manifest}, ${table.signature}, ${table.quotaDay}) in (0, 4)`,
    ),
    check('batch_jobs_run_of_account', sql`${table.batch} is null or ${table.userKind} = 'ledger'`),
    uniqueIndex('batch_jobs_one_running')
      .on(table.userKind, table.userSub)
      .where(sql`${table.status} = 'running' and ${table.batch} is null`),
    uniqueIndex('batch_jobs_one_run')
      .on(table.batch)
      .where(sql`${table.status} = 'running' and ${table.batch} is not null`),
    index('batch_jobs_of_batch').on(table.batch, table.createdAt).where(sql`${table.batch} is not null`),
    index('batch_jobs_newest').on(...newest(table)),
    index('batch_jobs_newest_of_status').on(table.status, ...newest(table)),
    index('batch_jobs_of_user').on(table.userSub, ...newest(table)),
  ],
)

/** One transfer of a job or of a run. The owner of a run's escrow is its `quotaAccount`. */
export const batchItems = pgTable(
  'batch_items',
  {
    job: uuid('job').notNull(),
    /** position in the job's amounts, from 0 */
    position: integer('position').notNull(),
    status: text('status', { enum: ITEM_STATUSES }).notNull().default('queued'),
    /** G… or C…; null: the paying channel pays another channel */
    recipient: text('recipient'),
    /** the payout that an item of a run pays; null for an item of a job, like `spender` */
    payout: uuid('payout').references(() => payouts.id),
    /** the channel that the employer has delegated to: no other may pay the item */
    spender: text('spender'),
    /** the amount as a JWE for the relay; erased when the item ends */
    sealedAmount: text('sealed_amount'),
    /** the account whose sponsor quota the transfer uses */
    quotaAccount: text('quota_account').notNull(),
    /** its channel, or its last one */
    channel: text('channel'),
    /** incremented when a worker takes the item: an earlier worker can no longer change it */
    attempt: integer('attempt').notNull().default(0),
    /** the number of its transfers that failed on the ledger */
    failures: integer('failures').notNull().default(0),
    /** channels whose balance is too low for this item */
    unable: text('unable').array().notNull().default(sql`'{}'::text[]`),
    /** hash of the signed transfer, 64 hex digits; stored before it is submitted, replaced only by a new one */
    innerHash: text('inner_hash'),
    /** that transfer, base64 XDR; erased when the item ends */
    signedXdr: text('signed_xdr'),
    /** the channel's opening once that transfer has applied, as a JWE for the relay */
    sealedOpening: text('sealed_opening'),
    /**
     * whether any of its transfers that ended without payment was submitted; only then does a run's item count against
     * the quota
     */
    submitted: boolean('submitted').notNull().default(false),
    /** the hash of the transfer that the ledger included, or of the last attempt */
    hash: text('hash'),
    error: text('error'),
    /** a response ruled the item out, so it is not retried before this time */
    doubtedUntil: instant('doubted_until'),
    /** the latest ledger at that time: only a response that cannot lag behind it fails the item */
    doubtedLedger: integer('doubted_ledger'),
    /** by the database's clock, like `moved_at`: the item is suspended if it is earlier */
    queuedAt: instant('queued_at').notNull().default(sql`clock_timestamp()`),
    /** when a transfer of the item was first recorded */
    sentAt: instant('sent_at'),
    settledAt: instant('settled_at'),
  },
  (table) => [
    primaryKey({ columns: [table.job, table.position] }),
    foreignKey({ name: 'batch_items_job', columns: [table.job], foreignColumns: [batchJobs.id] }),
    check('batch_items_status', oneOf(table.status, ITEM_STATUSES)),
    check('batch_items_settled', sql`(${hasEnded(table)}) = (${table.settledAt} is not null)`),
    check('batch_items_sealed', sql`(${hasEnded(table)}) = (${table.sealedAmount} is null)`),
    check('batch_items_signed_xdr', sql`(${table.status} = 'signed') = (${table.signedXdr} is not null)`),
    check('batch_items_run', sql`(${table.payout} is null) = (${table.spender} is null)`),
    check(
      'batch_items_signed_opening',
      sql`(${table.status} = 'signed' and ${table.payout} is null) = (${table.sealedOpening} is not null)`,
    ),
    check('batch_items_signed_hash', sql`${table.status} <> 'signed' or ${table.innerHash} is not null`),
    check('batch_items_channel', sql`${table.status} not in ('taken', 'signed') or ${table.channel} is not null`),
    check('batch_items_paid', sql`${table.status} <> 'paid' or ${table.hash} is not null`),
    uniqueIndex('batch_items_one_per_channel').on(table.channel).where(sql`${table.status} in ('taken', 'signed')`),
    index('batch_items_open').on(table.queuedAt, table.job, table.position).where(isOpen(table)),
    index('batch_items_open_of_job').on(table.job, table.position).where(isOpen(table)),
    index('batch_items_ended').on(table.job, table.settledAt).where(sql`${table.settledAt} is not null`),
    index('batch_items_of_spender')
      .on(table.spender, table.quotaAccount, table.settledAt)
      .where(sql`${table.spender} is not null`),
    index('batch_items_of_payout').on(table.payout).where(sql`${table.payout} is not null`),
    index('batch_items_of_recipient').on(table.recipient).where(sql`${table.payout} is null`),
    index('batch_items_hash').using('hash', table.innerHash),
    index('batch_items_unfinished').on(table.status).where(sql`${table.status} not in ('paid', 'skipped')`),
    index('batch_items_of_error').on(table.error).where(sql`${table.status} = 'failed'`),
  ],
)

function isOpen({ status }: { status: AnyPgColumn }) {
  return sql`${status} in ('queued', 'taken', 'signed')`
}

function hasEnded({ status }: { status: AnyColumn }) {
  return oneOf(status, ['paid', 'failed', 'unknown', 'skipped'])
}

/**
 * The state of a channel: the item that holds it, its balance, which only relays can read, and its problem. Items hold
 * channels and processes don't, so a crashed process holds nothing.
 */
export const relayChannels = pgTable(
  'relay_channels',
  {
    token: text('token').notNull(),
    address: text('address').notNull(),
    /** the balance at a cursor of the ledger's events, as a JWE for the relay */
    sealedBalance: text('sealed_balance'),
    /** the current opening of the spendable commitment, as a JWE for the relay */
    sealedOpening: text('sealed_opening'),
    problem: text('problem', { enum: CHANNEL_PROBLEMS }),
    /** since when it has this problem; set by a trigger (functions.sql) */
    problemSince: instant('problem_since'),
    /** the item that holds the channel until it ends */
    itemJob: uuid('item_job'),
    itemPosition: integer('item_position'),
    /** the item that gets the channel next: its proof may be generated ahead, but nothing is signed for it yet */
    nextJob: uuid('next_job'),
    nextPosition: integer('next_position'),
    /**
     * the highest sequence number that this service has signed for the channel, recorded before it is used; null until
     * the first check adopts the ledger's
     */
    sequenceNumber: bigint('sequence_number', { mode: 'bigint' }),
    /** the number at which the channel was adopted: no transfer records what has used it, or an earlier one */
    adoptedSequence: bigint('adopted_sequence', { mode: 'bigint' }),
    /** when the problem `moved` was found: until the release no channel pays an item that was queued before */
    movedAt: instant('moved_at'),
    /** the ledger's sequence number at that time: above it, the channel was released and has paid since the backup */
    movedSequence: bigint('moved_sequence', { mode: 'bigint' }),
    /** when an operator last asked for the release, by what name and why; null after the release */
    releaseRequestedAt: instant('release_requested_at'),
    releaseRequestedBy: text('release_requested_by'),
    releaseNote: text('release_note'),
    /** when a relay last tried, which keeps the others from trying too, and why it could not; null before that */
    releaseTriedAt: instant('release_tried_at'),
    releaseRefusal: text('release_refusal', { enum: RELEASE_REFUSALS }),
    /**
     * whether an operator has paused the channel: it starts no items. Not a problem, because the next check would clear
     * it
     */
    paused: boolean('paused').notNull().default(false),
    /** whether the relay that announces it can prove payments from a delegation, so that the channel can serve runs */
    runs: boolean('runs').notNull().default(false),
    /** why that relay cannot; null if it can, or does not know yet */
    runProblem: text('run_problem'),
    /** when a relay last compared the channel's sequence number with the ledger's, by the database's clock */
    comparedAt: instant('compared_at'),
    /** when a relay last announced the channel, by the database's clock */
    seenAt: instant('seen_at').notNull(),
    /** when the channel's events were last read */
    readAt: instant('read_at'),
  },
  (table) => [
    primaryKey({ columns: [table.token, table.address] }),
    foreignKey({
      name: 'relay_channels_item',
      columns: [table.itemJob, table.itemPosition],
      foreignColumns: [batchItems.job, batchItems.position],
    }),
    foreignKey({
      name: 'relay_channels_next_item',
      columns: [table.nextJob, table.nextPosition],
      foreignColumns: [batchItems.job, batchItems.position],
    }),
    check('relay_channels_item_whole', sql`(${table.itemJob} is null) = (${table.itemPosition} is null)`),
    check('relay_channels_next_whole', sql`(${table.nextJob} is null) = (${table.nextPosition} is null)`),
    check('relay_channels_next_follows', sql`${table.nextJob} is null or ${table.itemJob} is not null`),
    uniqueIndex('relay_channels_held').on(table.itemJob, table.itemPosition),
    uniqueIndex('relay_channels_reserved').on(table.nextJob, table.nextPosition),
    check('relay_channels_problem', oneOf(table.problem, CHANNEL_PROBLEMS)),
    check('relay_channels_release_refusal', oneOf(table.releaseRefusal, RELEASE_REFUSALS)),
    check(
      'relay_channels_release',
      sql`num_nulls(${table.releaseRequestedAt}, ${table.releaseRequestedBy}, ${table.releaseNote}) in (0, 3)`,
    ),
    check(
      'relay_channels_moved',
      sql`(${table.problem} is not distinct from 'moved') = (${table.movedAt} is not null)`,
    ),
  ],
)
