import { sql } from 'drizzle-orm'
import {
  bigint,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { organisations, payouts } from './directory.ts'

/**
 * The life of a sponsored transfer. `held`: recorded, its bid reserved, perhaps never sent. `sent`: given to the
 * network at least once, outcome unknown. The rest is final: `success` and `failed` stand on the ledger, `dead` can
 * no longer get there.
 */
export const TRANSFER_STATUSES = ['held', 'sent', 'success', 'failed', 'dead'] as const
export type TransferStatus = (typeof TRANSFER_STATUSES)[number]

const moment = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })
const stroops = (name: string) => bigint(name, { mode: 'bigint' })

/** One row per inner transaction that the sponsor has agreed to pay for, written before anything is sent. */
export const sponsoredTransfers = pgTable(
  'sponsored_transfers',
  {
    /** hash of the client's own transaction, 64 hex digits: the key that makes a repeated request the same request */
    innerHash: text('inner_hash').primaryKey(),
    outerHash: text('outer_hash').notNull().unique(),
    account: text('account').notNull(),
    recipient: text('recipient').notNull(),
    sponsor: text('sponsor').notNull(),
    /** breaks the tie between transfers of one moment: lists keep one order */
    sequence: bigint('sequence', { mode: 'number' }).generatedAlwaysAsIdentity(),
    /** whose quota it counts against, if not the account's own: the user whose batch job a channel pays */
    quotaAccount: text('quota_account'),
    /** the signed fee-bump envelope, base64 XDR, sent again unchanged until the outcome is known */
    envelope: text('envelope').notNull(),
    /** the outer fee in stroops, reserved until the outcome is known */
    bid: stroops('bid').notNull(),
    /** the inner transaction's maxTime, unix seconds */
    maxTime: bigint('max_time', { mode: 'number' }).notNull(),
    /** UTC day whose quota the transfer counts against, YYYY-MM-DD */
    quotaDay: text('quota_day').notNull(),
    /** latest ledger known when the row was written: an RPC whose history starts later cannot prove death */
    sinceLedger: integer('since_ledger').notNull(),
    status: text('status', { enum: TRANSFER_STATUSES }).notNull().default('held'),
    /** the transaction's result code as the network gave it, at sending or on the ledger: txBAD_SEQ, txFAILED … */
    resultCode: text('result_code'),
    /** number of the contract error that a failure carried: 3506 is a stale proof */
    contractError: integer('contract_error'),
    /** the organisation of the account when the transfer was recorded */
    organisation: uuid('organisation').references(() => organisations.id, { onDelete: 'set null' }),
    /** the payout that the transfer pays, if it pays one */
    payout: uuid('payout').references(() => payouts.id),
    /** the hash that stands on the ledger: the outer one, or the inner one when the client sent that by itself */
    ledgerHash: text('ledger_hash'),
    ledger: integer('ledger'),
    /** stroops that the sponsor paid in the end */
    feeCharged: stroops('fee_charged'),
    createdAt: moment('created_at').notNull().defaultNow(),
    sentAt: moment('sent_at'),
    settledAt: moment('settled_at'),
  },
  (table) => [
    check('sponsored_transfers_status', sql`${table.status} in ('held', 'sent', 'success', 'failed', 'dead')`),
    check(
      'sponsored_transfers_settled',
      sql`(${table.status} in ('success', 'failed', 'dead')) = (${table.settledAt} is not null)`,
    ),
    check('sponsored_transfers_bid', sql`${table.bid} > 0`),
    index('sponsored_transfers_open').on(table.createdAt).where(sql`${table.status} in ('held', 'sent')`),
    index('sponsored_transfers_account').on(table.account, table.createdAt),
    index('sponsored_transfers_recipient').on(table.recipient, table.createdAt),
    index('sponsored_transfers_quota_account')
      .on(table.quotaAccount, table.createdAt)
      .where(sql`${table.quotaAccount} is not null`),
    // The other two hashes have indexes of their own, and the ledger's is nearly always one of them.
    index('sponsored_transfers_ledger_hash')
      .on(table.ledgerHash)
      .where(sql`${table.ledgerHash} <> ${table.innerHash} and ${table.ledgerHash} <> ${table.outerHash}`),
    index('sponsored_transfers_open_of_organisation')
      .on(table.organisation, table.createdAt)
      .where(sql`${table.status} in ('held', 'sent')`),
    index('sponsored_transfers_payout').on(table.payout),
    index('sponsored_transfers_sponsor').on(table.sponsor, table.createdAt),
    index('sponsored_transfers_troubles')
      .on(table.settledAt.desc().nullsFirst())
      .where(sql`${table.status} in ('failed', 'dead')`),
    index('sponsored_transfers_newest').on(table.createdAt.desc().nullsFirst(), table.sequence.desc().nullsFirst()),
    index('sponsored_transfers_newest_of_status').on(
      table.status,
      table.createdAt.desc().nullsFirst(),
      table.sequence.desc().nullsFirst(),
    ),
  ],
)

export type SponsoredTransfer = typeof sponsoredTransfers.$inferSelect

/** What an account has used of a UTC day. The account `*` is everybody: the daily budget. */
export const quotas = pgTable(
  'quotas',
  {
    account: text('account').notNull(),
    day: text('day').notNull(),
    /** stroops bid by transfers whose outcome is open */
    held: stroops('held').notNull().default(sql`0`),
    /** stroops really charged */
    used: stroops('used').notNull().default(sql`0`),
    /** transfers accepted and not dead */
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

/** The sum of a sponsor's open bids: what the network may still take from its balance. */
export const sponsorFloats = pgTable(
  'sponsor_floats',
  { sponsor: text('sponsor').primaryKey(), held: stroops('held').notNull().default(sql`0`) },
  (table) => [check('sponsor_floats_held', sql`${table.held} >= 0`)],
)

/** SEP-10 challenges that have been turned into a session, by transaction hash. */
export const usedChallenges = pgTable('used_challenges', {
  hash: text('hash').primaryKey(),
  /** when the challenge itself has long expired and the row may go */
  expiresAt: moment('expires_at').notNull(),
})

/** Who may use the sequence numbers of an account of ours: one holder at a time, for as long as it renews. */
export const leases = pgTable(
  'leases',
  {
    /** G-address */
    account: text('account').primaryKey(),
    /** one process, or one part of it */
    holder: text('holder').notNull(),
    /** by the database's clock; the lease is free from then on */
    until: moment('until').notNull(),
    /** rises with every taking, so that a holder that has lost the lease is told from the one that has it */
    token: bigint('token', { mode: 'number' }).notNull(),
  },
  (table) => [check('leases_token', sql`${table.token} > 0`)],
)

/**
 * The life of a faucet grant. `claimed`: nothing is signed yet. `signed`: a deposit is written down, perhaps sent,
 * outcome unknown. The rest is final: `granted` stands on the ledger as a success; `returned` provably brought nothing
 * and never will; `lost` can bring nothing any more, and whether it did the RPC no longer remembers.
 */
export const GRANT_STATUSES = ['claimed', 'signed', 'granted', 'returned', 'lost'] as const
export type GrantStatus = (typeof GRANT_STATUSES)[number]

/** The last grant of each account. */
export const faucetGrants = pgTable(
  'faucet_grants',
  {
    /** G… or C…, whose confidential balance is filled */
    account: text('account').primaryKey(),
    /** this grant among all that the account ever had */
    claim: uuid('claim').notNull().defaultRandom(),
    /** base units */
    amount: bigint('amount', { mode: 'bigint' }).notNull(),
    status: text('status', { enum: GRANT_STATUSES }).notNull().default('claimed'),
    /** the cool-down counts from here, by the database's clock */
    claimedAt: moment('claimed_at').notNull().defaultNow(),
    /** the account that pays the deposit, once one is signed */
    faucet: text('faucet'),
    /** the signed deposit, base64 XDR, sent again unchanged until the outcome is known, and its hash, 64 hex digits */
    envelope: text('envelope'),
    hash: text('hash').unique(),
    /** the faucet's sequence number that the deposit uses */
    sequence: bigint('sequence', { mode: 'bigint' }),
    /** the deposit's maxTime, unix seconds */
    maxTime: bigint('max_time', { mode: 'number' }),
    /** latest ledger known when the deposit was signed: an RPC whose history starts later cannot prove death */
    sinceLedger: integer('since_ledger'),
    /** the result code that the network gave last, and the number of the contract error behind it */
    resultCode: text('result_code'),
    contractError: integer('contract_error'),
    settledAt: moment('settled_at'),
  },
  (table) => [
    check('faucet_grants_status', sql`${table.status} in ('claimed', 'signed', 'granted', 'returned', 'lost')`),
    check('faucet_grants_amount', sql`${table.amount} > 0`),
    check(
      'faucet_grants_settled',
      sql`(${table.status} in ('granted', 'returned', 'lost')) = (${table.settledAt} is not null)`,
    ),
    check(
      'faucet_grants_signed',
      sql`${table.status} not in ('signed', 'granted', 'lost') or num_nulls(${table.faucet}, ${table.envelope}, ${table.hash}, ${table.sequence}, ${table.maxTime}, ${table.sinceLedger}) = 0`,
    ),
    // The network takes one transaction of an account at a time, and two would use one sequence number.
    uniqueIndex('faucet_grants_one_at_a_time').on(table.faucet).where(sql`${table.status} = 'signed'`),
    index('faucet_grants_open').on(table.claimedAt).where(sql`${table.status} in ('claimed', 'signed')`),
  ],
)
