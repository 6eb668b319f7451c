import { sql } from 'drizzle-orm'
import { bigint, boolean, index, integer, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { organisations } from './directory.ts'

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

/**
 * The settled transfers of an organisation's users, by the hour in which they were recorded. No foreign key, which would refuse
 * a transfer whose organisation has been dissolved. A trigger deletes the hours with the organisation: a person may found one again
 * with the same id (functions.sql).
 */
export const organisationHours = pgTable(
  'organisation_hours',
  {
    /** UTC, YYYY-MM-DDTHH */
    hour: text('hour').notNull(),
    organisation: uuid('organisation').notNull(),
    /** whether the organisation's sums of 24 hours include it; those of 30 days include every hour that is kept */
    isRecent: boolean('is_recent').notNull().default(true),
    transfers: integer('transfers').notNull(),
    /** failed on the ledger, expired or unknown */
    failed: integer('failed').notNull(),
    /** charged to the sponsor, in stroops */
    fees: bigint('fees', { mode: 'bigint' }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.hour, table.organisation] }),
    index('organisation_hours_recent').on(table.hour).where(sql`${table.isRecent}`),
    index('organisation_hours_organisation').on(table.organisation),
  ],
)

const count = (name: string) => integer(name).notNull().default(0)
const stroops = (name: string) => bigint(name, { mode: 'bigint' }).notNull().default(sql`0`)

/**
 * The sums of an organisation's hours over the last 24 hours and 30 days, which sort the list of organisations. Settling
 * a transfer adds to both, and a chore subtracts the hours that have left them. A trigger inserts the row (functions.sql).
 */
export const organisationCosts = pgTable(
  'organisation_costs',
  {
    organisation: uuid('organisation')
      .primaryKey()
      .references(() => organisations.id, { onDelete: 'cascade' }),
    /** of the organisation */
    sequence: bigint('sequence', { mode: 'number' }).notNull(),
    dayTransfers: count('day_transfers'),
    dayFailed: count('day_failed'),
    dayFees: stroops('day_fees'),
    monthTransfers: count('month_transfers'),
    monthFailed: count('month_failed'),
    monthFees: stroops('month_fees'),
  },
  (table) => [
    index('organisation_costs_day').on(table.dayFees, table.sequence),
    index('organisation_costs_month').on(table.monthFees, table.sequence),
  ],
)
