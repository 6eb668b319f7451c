import { sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  bigint,
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
import { organisations, payouts } from './directory.ts'
import { relayLines } from './relay.ts'

/**
 * The states of a transfer. `open`: recorded, its bid reserved, outcome undecided. The rest are final: `succeeded` and
 * `failed` transfers were included in a ledger, an `expired` one provably never will be, and the history that could
 * decide an `unknown` one is lost.
 */
export const TRANSFER_STATUSES = ['open', 'succeeded', 'failed', 'expired', 'unknown'] as const
export type TransferStatus = (typeof TRANSFER_STATUSES)[number]

/**
 * The calls that a transfer can be. A `transfer` is a confidential transfer of its own account, a `delegated` one is paid
 * by a channel from the escrow of another account, and a `deposit` is the faucet's. The others are named after their
 * function of the token.
 */
export const TRANSFER_KINDS = [
  'transfer',
  'register',
  'merge',
  'set_spender',
  'revoke_spender',
  'delegated',
  'deposit',
] as const
export type TransferKind = (typeof TRANSFER_KINDS)[number]

const stroops = (name: string) => bigint(name, { mode: 'bigint' })

/**
 * One row per payment that one sequence number of one account can make. Several signed envelopes may compete for it, and
 * the ledger applies at most one.
 */
export const transfers = pgTable(
  'transfers',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    sequence: sequence(),
    kind: text('kind', { enum: TRANSFER_KINDS }).notNull(),
    /** the source of the transaction, whose sequence number it uses */
    account: text('account').notNull(),
    /** the account whose escrow pays a delegated transfer; null for all others, which `account` pays */
    owner: text('owner'),
    sequenceNumber: bigint('sequence_number', { mode: 'bigint' }).notNull(),
    /** the payee; the spender of set_spender and revoke_spender; `account` itself for register and merge */
    recipient: text('recipient').notNull(),
    /**
     * the account that pays the fees; null for a deposit, which pays its own fee, and for a transaction that the client
     * submitted directly
     */
    sponsor: text('sponsor'),
    /** the account whose quota it counts against, if it isn't the payer's: the user whose batch job a channel pays */
    quotaAccount: text('quota_account'),
    /** UTC day whose quota the transfer counts against, YYYY-MM-DD */
    quotaDay: text('quota_day').notNull(),
    /**
     * stroops reserved until the outcome is decided: the largest bid of its envelopes. 0 for a transaction that was found
     * on the ledger, at which no release starts
     */
    bid: stroops('bid').notNull(),
    /**
     * lowest ledger of the responses that showed the number unused: only history that reaches back to it proves absence
     */
    recordedLedger: integer('recorded_ledger').notNull(),
    /**
     * the ledger up to which it was looked up. A hint: a value above the latest known ledger is ignored. Cleared by an
     * envelope that joins and by renewed signatures
     */
    lookedUpLedger: integer('looked_up_ledger'),
    status: text('status', { enum: TRANSFER_STATUSES }).notNull().default('open'),
    /** the organisation of the account when the transfer was recorded */
    organisation: uuid('organisation').references(() => organisations.id, { onDelete: 'set null' }),
    /** the id of the request that began it, which its caller may have chosen; null for the relay's and the faucet's */
    requestId: text('request_id'),
    /** the payout that the transfer pays, if it pays one */
    payout: uuid('payout').references(() => payouts.id),
    /**
     * the payout for which it was made, although it does not pay it: a payment that was found on the ledger after the payout was
     * canceled or paid otherwise, or one whose end is unknown and whose payout was found to be paid
     */
    foundFor: uuid('found_for').references(() => payouts.id),
    /** the line of a job or of a run that the transfer pays, if it pays one */
    lineJob: uuid('line_job'),
    linePosition: integer('line_position'),
    /** the applied hash: an outer one, or an inner one if the client submitted the inner transaction directly */
    hash: text('hash'),
    /** inner hash of the applied envelope */
    applied: text('applied'),
    ledger: integer('ledger'),
    /** when that ledger closed */
    appliedAt: instant('applied_at'),
    /** the result code from the ledger, as the SDK spells it: txSuccess, txFailed … */
    resultCode: text('result_code'),
    /** number of the contract error of a failure: 3506 is a stale proof */
    contractError: integer('contract_error'),
    /** stroops that the service paid in the end */
    feeCharged: stroops('fee_charged'),
    createdAt: instant('created_at').notNull().defaultNow(),
    settledAt: instant('settled_at'),
  },
  (table) => [
    check('transfers_status', oneOf(table.status, TRANSFER_STATUSES)),
    check('transfers_kind', oneOf(table.kind, TRANSFER_KINDS)),
    check('transfers_owner', sql`(${table.kind} = 'delegated') = (${table.owner} is not null)`),
    check('transfers_settled', sql`(${table.status} = 'open') = (${table.settledAt} is null)`),
    check('transfers_applied', sql`(${table.status} in ('succeeded', 'failed')) = (${table.hash} is not null)`),
    check('transfers_bid', sql`${table.bid} >= 0`),
    check('transfers_line_whole', sql`(${table.lineJob} is null) = (${table.linePosition} is null)`),
    foreignKey({
      name: 'transfers_line',
      columns: [table.lineJob, table.linePosition],
      foreignColumns: [relayLines.job, relayLines.position],
    }),
    uniqueIndex('transfers_one_open').on(table.account).where(sql`${table.status} = 'open'`),
    index('transfers_open').on(table.createdAt).where(sql`${table.status} in ('open', 'unknown')`),
    index('transfers_of_number').on(table.account, table.sequenceNumber),
    index('transfers_account').on(table.account, table.createdAt),
    index('transfers_recipient').on(table.recipient, table.createdAt),
    index('transfers_quota_account')
      .on(table.quotaAccount, table.createdAt)
      .where(sql`${table.quotaAccount} is not null`),
    index('transfers_open_of_organisation')
      .on(table.organisation, table.createdAt)
      .where(sql`${table.status} = 'open'`),
    index('transfers_payout').on(table.payout),
    // A payout that has an open transfer, was paid, or may have been paid, gets no other transfer.
    uniqueIndex('transfers_one_of_payout')
      .on(table.payout)
      .where(sql`${table.status} in ('open', 'succeeded', 'unknown')`),
    index('transfers_line').on(table.lineJob, table.linePosition).where(sql`${table.lineJob} is not null`),
    uniqueIndex('transfers_one_of_line')
      .on(table.lineJob, table.linePosition)
      .where(sql`${table.lineJob} is not null and ${table.status} in ('open', 'succeeded', 'unknown')`),
    index('transfers_found_for').on(table.foundFor).where(sql`${table.foundFor} is not null`),
    index('transfers_newest').on(...newest(table)),
    // Includes the columns of the filter by reason, so that it skips other failures without reading their rows.
    index('transfers_newest_failed')
      .on(...newest(table), table.resultCode, table.contractError)
      .where(hasFailed(table)),
    index('transfers_newest_of_organisation').on(table.organisation, ...newest(table)),
    index('transfers_newest_failed_of_organisation')
      .on(table.organisation, ...newest(table))
      .where(hasFailed(table)),
  ],
)

function hasFailed({ status }: { status: AnyPgColumn }) {
  return sql`${status} in ('failed', 'expired', 'unknown')`
}

export type Transfer = typeof transfers.$inferSelect

/**
 * The envelopes that were signed for a transfer, recorded before they are submitted. At most three envelopes of the
 * service compete for one transfer. An envelope that the client submitted directly joins them once it has been applied.
 * The ledger applies at most one envelope per sequence number.
 */
export const envelopes = pgTable(
  'envelopes',
  {
    /** hash of the account's own transaction, 64 hex digits: the key by which a repeated request is recognised */
    innerHash: text('inner_hash').primaryKey(),
    /** hash of its fee bump; null for a deposit, and for a transaction that reached the ledger without one */
    outerHash: text('outer_hash'),
    transfer: uuid('transfer')
      .notNull()
      .references(() => transfers.id, { onDelete: 'cascade' }),
    /** the signed envelope, base64 XDR, sent again unchanged; null when there is nothing to send, and a day after the end */
    signed: text('signed'),
    /** the maximum fee that the network may charge for it, in stroops */
    bid: stroops('bid').notNull(),
    /** the opening of the channel's balance once it has applied, as a JWE for the relay; null for all but a channel's own payments */
    sealedOpening: text('sealed_opening'),
    /** its maxTime, unix seconds; 0 for none */
    maxTime: bigint('max_time', { mode: 'number' }).notNull(),
    /** the code with which the network rejected it when it was last submitted; null if it was accepted */
    resultCode: text('result_code'),
    /** the latest known ledger when it was first refused with a code, if it is refused. A hint */
    refusedLedger: integer('refused_ledger'),
    /**
     * the latest known ledger when it was last submitted. A hint; also the claim that prevents processes from
     * submitting twice
     */
    sentLedger: integer('sent_ledger'),
    recordedAt: instant('recorded_at').notNull().defaultNow(),
    firstSentAt: instant('first_sent_at'),
    lastSentAt: instant('last_sent_at'),
  },
  (table) => [
    // Not unique: the hash covers the inner transaction, so no two envelopes share one.
    index('envelopes_outer_hash').using('hash', table.outerHash),
    index('envelopes_of_transfer').on(table.transfer),
    index('envelopes_with_signed').on(table.recordedAt).where(sql`${table.signed} is not null`),
  ],
)

export type Envelope = typeof envelopes.$inferSelect

/** An account's use of its quota on a UTC day. The account `*` is the sum of all accounts: the daily budget. */
export const quotas = pgTable(
  'quotas',
  {
    account: text('account').notNull(),
    day: text('day').notNull(),
    /** stroops bid by open transfers */
    held: stroops('held').notNull().default(sql`0`),
    /** stroops actually charged */
    used: stroops('used').notNull().default(sql`0`),
    /** transfers recorded, without a relay's items that expired without ever being submitted */
    count: integer('count').notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.account, table.day] }),
    index('quotas_of_day').on(table.day),
    check('quotas_held', sql`${table.held} >= 0`),
    check('quotas_used', sql`${table.used} >= 0`),
    check('quotas_count', sql`${table.count} >= 0`),
  ],
)

/** The sum of a sponsor's open bids, which the network may still charge to its balance. */
export const sponsorFloats = pgTable(
  'sponsor_floats',
  { sponsor: text('sponsor').primaryKey(), held: stroops('held').notNull().default(sql`0`) },
  (table) => [check('sponsor_floats_held', sql`${table.held} >= 0`)],
)

/** SEP-10 challenges that have been turned into a session, by transaction hash. */
export const usedChallenges = pgTable(
  'used_challenges',
  {
    hash: text('hash').primaryKey(),
    /** when the challenge itself has long expired and the row may be deleted */
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [index('used_challenges_oldest').on(table.expiresAt)],
)
