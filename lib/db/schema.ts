import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import * as approvals from '#drizzle/schema/approvals.ts'
import * as archive from '#drizzle/schema/archive.ts'
import * as audit from '#drizzle/schema/audit.ts'
import * as chores from '#drizzle/schema/chores.ts'
import * as contractions from '#drizzle/schema/contractions.ts'
import * as counts from '#drizzle/schema/counts.ts'
import * as directory from '#drizzle/schema/directory.ts'
import * as events from '#drizzle/schema/events.ts'
import * as idempotency from '#drizzle/schema/idempotency.ts'
import * as mails from '#drizzle/schema/mails.ts'
import * as relay from '#drizzle/schema/relay.ts'
import * as transfers from '#drizzle/schema/transfers.ts'
import * as webhooks from '#drizzle/schema/webhooks.ts'

/** Every table of the service. */
export const schema = {
  ...approvals,
  ...transfers,
  ...directory,
  ...relay,
  ...audit,
  ...archive,
  ...chores,
  ...contractions,
  ...counts,
  ...events,
  ...mails,
  ...idempotency,
  ...webhooks,
}

/** A database or a transaction of it; verbs take either. */
export type Database = PgDatabase<PgQueryResultHKT, typeof schema>

/**
 * A transaction that waited for a lock must see the changes of the previous holder, even if the server's default
 * isolation level differs.
 */
export const READ_COMMITTED = { isolationLevel: 'read committed' } as const
