import { sql } from 'drizzle-orm'
import { bigint, check, index, integer, pgTable, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core'
import { organisations, payouts } from './directory-schema.ts'

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
    index('sponsored_transfers_open_of_organisation')
      .on(table.organisation, table.createdAt)
      .where(sql`${table.status} in ('held', 'sent')`),
    index('sponsored_transfers_payout').on(table.payout),
  ],
)

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
