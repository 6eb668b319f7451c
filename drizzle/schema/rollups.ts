import { sql } from 'drizzle-orm'
import { bigint, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core'

/**
 * Settled transfers, without the faucet's deposits, counted by the hour in which they were recorded. The chore `rollups`
 * adds each transfer once. The last 32 days are kept by hour, and the sum of all hours for ever.
 */
export const settlementCounts = pgTable(
  'settlement_counts',
  {
    /** UTC, YYYY-MM-DDTHH; `ever` for the sum of all hours */
    hour: text('hour').notNull(),
    status: text('status').notNull(),
    /** empty for a transfer that its client submitted directly */
    sponsor: text('sponsor').notNull(),
    /** the position of the time from recording to settlement in SECONDS (lib/transfers/rollups.ts) */
    bucket: integer('bucket').notNull(),
    count: bigint('count', { mode: 'number' }).notNull(),
    /** the sum of these times. An integer, so that the sum of a counter's parts never depends on their order */
    milliseconds: bigint('milliseconds', { mode: 'number' }).notNull(),
    /** the sum of the fees charged, in stroops */
    fees: bigint('fees', { mode: 'bigint' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.hour, table.status, table.sponsor, table.bucket] })],
)

/** Refused transfers in the audit log, by reason. Months that are exported from the log still count. */
export const refusalCounts = pgTable('refusal_counts', {
  reason: text('reason').primaryKey(),
  count: bigint('count', { mode: 'number' }).notNull(),
})

/**
 * How far a roll-up has come in the sequence that numbers its rows. Numbers commit out of order: those up to `bound` are
 * complete once every transaction before `boundXid` has ended.
 */
export const rollups = pgTable('rollups', {
  name: text('name', { enum: ['settlements', 'refusals'] }).primaryKey(),
  /** the last number that is counted */
  after: bigint('after', { mode: 'number' }).notNull().default(0),
  bound: bigint('bound', { mode: 'number' }).notNull().default(0),
  boundXid: bigint('bound_xid', { mode: 'bigint' }).notNull().default(sql`0`),
})
