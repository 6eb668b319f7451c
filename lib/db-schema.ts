import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import * as audit from '#drizzle/audit-schema.ts'
import * as directory from '#drizzle/directory-schema.ts'
import * as relay from '#drizzle/relay-schema.ts'
import * as transfers from '#drizzle/schema.ts'

/** Every table of ours. */
export const schema = { ...transfers, ...directory, ...relay, ...audit }

/** A database or a transaction of it; verbs take either. */
export type Database = PgDatabase<PgQueryResultHKT, typeof schema>

/** Whoever has waited for a lock is to see what its holder did, whatever the database's own default is. */
export const READ_COMMITTED = { isolationLevel: 'read committed' } as const
