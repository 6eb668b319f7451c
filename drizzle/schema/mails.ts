import { boolean, pgTable, primaryKey, uuid } from 'drizzle-orm/pg-core'
import { instant } from './columns.ts'

/**
 * Payees who are still to be told by mail that they were paid, one row for each payer however many payments there were.
 * A person is the id that its identities share.
 */
export const paymentMails = pgTable(
  'payment_mails',
  {
    person: uuid('person').notNull(),
    payer: uuid('payer').notNull(),
    queuedAt: instant('queued_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.person, table.payer] })],
)

/** The people who have had such a mail, or want none. */
export const mailedPayees = pgTable('mailed_payees', {
  person: uuid('person').primaryKey(),
  /** when the last mail was begun: at most one an hour */
  mailedAt: instant('mailed_at'),
  /** whether the person has unsubscribed, from all organisations */
  isMuted: boolean('is_muted').notNull().default(false),
})
