import { sql } from 'drizzle-orm'
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

/** A job or a run is `running` until every line has ended; `failed` if one of them did. */
export const JOB_STATUSES = ['running', 'completed', 'failed'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

/**
 * How a line ends. `unknown`: the ledger's history no longer reaches back far enough to tell whether it was paid. `canceled`:
 * the payout of a run was canceled, or paid by another transfer.
 */
export const LINE_OUTCOMES = ['paid', 'failed', 'unknown', 'canceled'] as const
export type LineOutcome = (typeof LINE_OUTCOMES)[number]

/** The problems that prevent a channel from paying. `balance`: its balance is zero. */
export const CHANNEL_PROBLEMS = ['account', 'registration', 'sequence', 'balance', 'history'] as const
export type ChannelProblem = (typeof CHANNEL_PROBLEMS)[number]

/**
 * Why a channel is not reconciled with the ledger during a stop. `transfer-open`: one of its transfers is still open.
 * `rpc-behind`: the RPC's events end below its account. `history-gap`: neither the RPC nor an archive has all events since its last
 * recorded payment. `failed`: the relay's log says why.
 */
export const RECONCILE_PROBLEMS = ['transfer-open', 'rpc-behind', 'history-gap', 'failed'] as const
export type ReconcileProblem = (typeof RECONCILE_PROBLEMS)[number]

/**
 * Why a channel keeps payments stopped. `purpose-unknown`: all its payments were found, and the mark of one from an escrow names no
 * payout of this database.
 */
export type StopProblem = ReconcileProblem | 'purpose-unknown'

/**
 * Whether payments of a token go on: one row for each token, which every payment reads and locks against a stop. They stop
 * when the ledger shows a payment of a channel that this database does not have, as after a restore from a backup.
 */
export const paymentStops = pgTable('payment_stops', {
  token: text('token').primaryKey(),
  /** when the stop began, by the database's clock; null while payments go on */
  since: instant('since'),
  /** when the RPC was found to serve a different network from the archive's; nothing is paid until this is null again */
  foreignSince: instant('foreign_since'),
  /** the payments without a row that were found on the ledger since then */
  found: integer('found').notNull().default(0),
})

/**
 * What the relay pays: a job from its own balances, or a run, which is a batch that the employer has delegated. The amounts
 * are stored sealed to the relay.
 */
export const relayJobs = pgTable(
  'relay_jobs',
  {
    id: uuid('id').primaryKey(),
    sequence: sequence(),
    /** the user who started the job */
    userKind: text('user_kind', { enum: IDENTITY_KINDS }).notNull(),
    userSub: text('user_sub').notNull(),
    /** thumbprint of the key that the amounts are sealed to: only relays with that key lease its lines */
    relayKey: text('relay_key').notNull(),
    /** the batch that a run pays; null for a job */
    batch: uuid('batch').references(() => batches.id),
    /** the manifest of a run, as the employer has signed it; each relay checks both before it pays */
    manifest: text('manifest'),
    /** base64 */
    signature: text('signature'),
    /** UTC day whose quota a run counts against with all its lines, YYYY-MM-DD */
    quotaDay: text('quota_day'),
    status: text('status', { enum: JOB_STATUSES }).notNull().default('running'),
    /** the error of the first line that was not paid */
    error: text('error'),
    /** the code of that error; `restored`: the run was ended because a restored database had lost payments */
    code: text('code'),
    createdAt: instant('created_at').notNull(),
    endedAt: instant('ended_at'),
  },
  (table) => [
    check('relay_jobs_status', oneOf(table.status, JOB_STATUSES)),
    check('relay_jobs_ended', sql`(${table.status} = 'running') = (${table.endedAt} is null)`),
    check(
      'relay_jobs_run',
      sql`num_nulls(${table.batch}, ${table.manifest}, ${table.signature}, ${table.quotaDay}) in (0, 4)`,
    ),
    check('relay_jobs_run_of_account', sql`${table.batch} is null or ${table.userKind} = 'ledger'`),
    uniqueIndex('relay_jobs_one_running')
      .on(table.userKind, table.userSub)
      .where(sql`${table.status} = 'running' and ${table.batch} is null`),
    uniqueIndex('relay_jobs_one_run')
      .on(table.batch)
      .where(sql`${table.status} = 'running' and ${table.batch} is not null`),
    index('relay_jobs_of_batch').on(table.batch, table.createdAt).where(sql`${table.batch} is not null`),
    index('relay_jobs_newest').on(...newest(table)),
    index('relay_jobs_newest_of_status').on(table.status, ...newest(table)),
    index('relay_jobs_of_user').on(table.userSub, ...newest(table)),
  ],
)

/**
 * What one line of a job or of a run says to pay. It has no states, only an outcome: which transfer may pay it is written in
 * `transfers`. The owner of a run's escrow is its `quotaAccount`.
 */
export const relayLines = pgTable(
  'relay_lines',
  {
    job: uuid('job').notNull(),
    /** position in the job's amounts, from 0 */
    position: integer('position').notNull(),
    /** G… or C…; null: the paying channel pays another channel */
    recipient: text('recipient'),
    /** the payout that a line of a run pays; null for a line of a job, like `spender` */
    payout: uuid('payout').references(() => payouts.id),
    /** the channel that the employer has delegated to: no other may pay the line */
    spender: text('spender'),
    /** the last ledger of that delegation */
    liveUntil: integer('live_until'),
    /** the amount as a JWE for the relay; erased when the line ends */
    sealedAmount: text('sealed_amount'),
    /** the account whose sponsor quota the transfer uses */
    quotaAccount: text('quota_account').notNull(),
    /** by the database's clock */
    queuedAt: instant('queued_at').notNull().default(sql`clock_timestamp()`),
    /** when it may be leased next: later than `queuedAt` while it is in doubt, or waits for another payment */
    due: instant('due').notNull().default(sql`clock_timestamp()`),
    /** the channel that leases it, or leased it last */
    channel: text('channel'),
    /**
     * until when a host prepares its payment. A courtesy: two hosts that prepare one line waste a proof, and the transfer that is
     * recorded first pays
     */
    leasedUntil: instant('leased_until'),
    /** the latest ledger when a response ruled the line out: only a response that cannot lag behind it fails the line */
    doubtedLedger: integer('doubted_ledger'),
    /** channels whose balance is too low for this line */
    unable: text('unable').array().notNull().default(sql`'{}'::text[]`),
    /** the number of its transfers that failed on the ledger */
    failures: integer('failures').notNull().default(0),
    /** when a transfer of the line was first recorded */
    sentAt: instant('sent_at'),
    /** null until it has ended */
    outcome: text('outcome', { enum: LINE_OUTCOMES }),
    /** why it was not paid */
    error: text('error'),
    /** the hash of the transfer that paid it, or of the last one to fail on the ledger */
    hash: text('hash'),
    settledAt: instant('settled_at'),
  },
  (table) => [
    primaryKey({ columns: [table.job, table.position] }),
    foreignKey({ name: 'relay_lines_job', columns: [table.job], foreignColumns: [relayJobs.id] }),
    check('relay_lines_outcome', oneOf(table.outcome, LINE_OUTCOMES)),
    check('relay_lines_settled', sql`(${isOpen(table)}) = (${table.settledAt} is null)`),
    check('relay_lines_sealed', sql`(${isOpen(table)}) = (${table.sealedAmount} is not null)`),
    check('relay_lines_run', sql`num_nulls(${table.payout}, ${table.spender}, ${table.liveUntil}) in (0, 3)`),
    check(
      'relay_lines_leased',
      sql`${table.leasedUntil} is null or (${table.channel} is not null and ${isOpen(table)})`,
    ),
    check('relay_lines_paid', sql`${table.outcome} is distinct from 'paid' or ${table.hash} is not null`),
    index('relay_lines_open').on(table.queuedAt, table.job, table.position).where(isOpen(table)),
    index('relay_lines_open_of_job').on(table.job, table.position).where(isOpen(table)),
    index('relay_lines_open_until')
      .on(table.liveUntil)
      .where(sql`${table.liveUntil} is not null and ${isOpen(table)}`),
    index('relay_lines_turn_of_run')
      .on(table.spender, table.quotaAccount, table.due, table.job, table.position)
      .where(sql`${table.spender} is not null and ${isOpen(table)}`),
    index('relay_lines_turn_of_job')
      .on(table.due, table.job, table.position)
      .where(sql`${table.spender} is null and ${isOpen(table)}`),
    index('relay_lines_leased_by').on(table.channel).where(sql`${table.leasedUntil} is not null`),
    index('relay_lines_ended').on(table.job, table.settledAt).where(sql`${table.settledAt} is not null`),
    index('relay_lines_of_spender')
      .on(table.spender, table.quotaAccount, table.settledAt)
      .where(sql`${table.spender} is not null`),
    index('relay_lines_of_channel').on(table.channel, table.settledAt).where(sql`${table.spender} is null`),
    index('relay_lines_of_payout').on(table.payout).where(sql`${table.payout} is not null`),
    index('relay_lines_of_recipient').on(table.recipient).where(sql`${table.payout} is null`),
    index('relay_lines_unpaid')
      .on(table.outcome)
      .where(sql`${table.outcome} is null or ${table.outcome} in ('failed', 'unknown')`),
    index('relay_lines_of_error').on(table.error).where(sql`${table.outcome} = 'failed'`),
  ],
)

function isOpen({ outcome }: { outcome: AnyPgColumn }) {
  return sql`${outcome} is null`
}

/**
 * The state of a channel: its balance, which only relays can read, and its problem. Its open transfer holds it, and nothing
 * else does: a crashed process holds nothing.
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
    /** the key by which its payments can be attributed, as a JWE for the relay; null until a relay has its seed */
    sealedMarkKey: text('sealed_mark_key'),
    problem: text('problem', { enum: CHANNEL_PROBLEMS }),
    /** since when it has this problem; set by a trigger (functions.sql) */
    problemSince: instant('problem_since'),
    /**
     * the sequence number at which the channel was adopted: no transfer records what has used it, or an earlier one. Null until
     * the first check
     */
    adoptedSequence: bigint('adopted_sequence', { mode: 'bigint' }),
    /** the sequence number that the ledger showed when it was last compared */
    ledgerSequence: bigint('ledger_sequence', { mode: 'bigint' }),
    /** the beginning of the stop for which its payments were all found; payments go on when that holds for every channel */
    reconciledStop: instant('reconciled_stop'),
    /** whether it was found to have paid from an escrow for an unknown purpose: an operator has to decide */
    hasUnknownPurpose: boolean('has_unknown_purpose').notNull().default(false),
    /** why it is not reconciled for the present stop; null before a relay has tried, and if nothing is in the way */
    reconcileProblem: text('reconcile_problem', { enum: RECONCILE_PROBLEMS }),
    /** whether an operator has retired it: it pays nothing more, and is not compared with the ledger */
    retired: boolean('retired').notNull().default(false),
    /**
     * whether an operator has paused the channel: it leases no lines. Not a problem, because the next check would clear
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
    check('relay_channels_problem', oneOf(table.problem, CHANNEL_PROBLEMS)),
    check('relay_channels_reconcile_problem', oneOf(table.reconcileProblem, RECONCILE_PROBLEMS)),
  ],
)
