import { bigint, index, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core'
import { instant } from './columns.ts'

/** What a program learns of an event: ids, statuses, hashes and the caller's own external ids. */
export interface EventData {
  contractorId?: string
  batchId?: string
  payoutId?: string
  status?: string
  txHash?: string
  externalId?: string
}

/**
 * Entries of the audit log as programs see them, in the order in which they were published: the numbers of the log's entries are
 * given before they are committed, so a later number may be visible first. One publisher at a time numbers committed entries.
 */
export const events = pgTable(
  'events',
  {
    /** never reused, even after the event is deleted: clients remember the numbers of events */
    number: bigint('number', { mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
    /**
     * random, 16 hex digits: part of the event's id. After a restore, the database gives out the same numbers again; the token
     * distinguishes new events from lost ones.
     */
    token: text('token').notNull(),
    /** the sequence of the audit log's entry */
    entry: bigint('entry', { mode: 'number' }).notNull().unique(),
    organisation: uuid('organisation').notNull(),
    /** the contractor of a payout, who may see the event, too */
    payee: uuid('payee'),
    type: text('type').notNull(),
    data: jsonb('data').$type<EventData>().notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    index('events_of_organisation').on(table.organisation, table.number),
    index('events_of_payee').on(table.payee, table.number),
  ],
)
