import { index, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core'
import { instant } from './columns.ts'
import { IDENTITY_KINDS } from './directory.ts'

/**
 * What a response said, as references: it is presented again from the rows. Never has a name, an email, an address, a secret or a
 * link.
 */
export interface RecordedOutcome {
  /** the records that the request made, in the order of the response */
  ids: string[]
  /** the records that it found by their external ids */
  existing?: string[]
  /** the rows of the body that made none, counted from 1, and why */
  errors?: { row: number; code: string }[]
  /** of an invite, whose link is derived from it */
  version?: number
}

/** Requests with an Idempotency-Key that have changed something in the last 24 hours. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    kind: text('kind', { enum: IDENTITY_KINDS }).notNull(),
    sub: text('sub').notNull(),
    /** SHA-256 of the key, in hexadecimal: a client may have put anything into it */
    key: text('key').notNull(),
    /** method, path and body, as an HMAC under the key, from which a body cannot be guessed */
    fingerprint: text('fingerprint').notNull(),
    outcome: jsonb('outcome').$type<RecordedOutcome>().notNull(),
    /** while the request does more after its commit, such as sending a mail: when it counts as failed. Null once it is done */
    unfinishedUntil: instant('unfinished_until'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.sub, table.key] }),
    index('idempotency_keys_oldest').on(table.createdAt),
  ],
)
