import { bigint, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core'

/**
 * Settled transfers of users, counted by the hour in which they were recorded. The SQL transaction that ends a transfer
 * counts it (lib/transfers/counts.ts). The last 32 days are kept by hour, and the sum of all hours for ever.
 */
export const settlementCounts = pgTable(
  'settlement_counts',
  {
    /** UTC, YYYY-MM-DDTHH; `ever` for the sum of all hours */
    hour: text('hour').notNull(),
    status: text('status').notNull(),
    /** empty for a transfer that its client submitted directly */
    sponsor: text('sponsor').notNull(),
    /** the bucket of the times from recording to settlement that are below this bound (ms), and not below an earlier one */
    below: integer('below').notNull(),
    count: bigint('count', { mode: 'number' }).notNull(),
    /** the sum of these times. An integer, so that the sum of a counter's parts never depends on their order */
    milliseconds: bigint('milliseconds', { mode: 'number' }).notNull(),
    /** the sum of the fees charged, in stroops */
    fees: bigint('fees', { mode: 'bigint' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.hour, table.status, table.sponsor, table.below] })],
)

/** Refused transfers in the audit log, by reason. Months that are exported from the log still count. */
export const refusalCounts = pgTable('refusal_counts', {
  reason: text('reason').primaryKey(),
  count: bigint('count', { mode: 'number' }).notNull(),
})
