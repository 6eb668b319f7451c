import { type Placeholder, type Query, type SQL, sql } from 'drizzle-orm'
import type { Database } from './connection.ts'
import { type Columns, decoderOf, type Row } from './rows.ts'

/**
 * A query that is built once per database: building takes drizzle longer than running it takes the driver. Each transaction is a
 * `Database` too, and rebuilds the query. It has no name (`.prepare('')`), because a named statement belongs to a session, and a
 * pooler hands statements to changing sessions.
 */
export function builtOnce<Query extends object>(build: (db: Database) => Query): (db: Database) => Query {
  const built = new WeakMap<Database, Query>()
  return (db) => {
    const cached = built.get(db)
    if (cached) return cached
    const query = build(db)
    built.set(db, query)
    return query
  }
}

/**
 * A query that is built once. Unlike one of `builtOnce`, it also runs in transactions.
 * @param columns what it selects or returns, in this order
 * @param build uses a placeholder for each value. Pass a value for each; use null for NULL.
 */
export function statement<Selected extends Columns>(
  columns: Selected,
  build: (db: Database) => { toSQL(): Query },
): (db: Database, values: Readonly<Record<string, unknown>>) => Promise<Row<Selected>[]> {
  type Prepared = { execute: Row<Selected>[]; all: never; values: never }
  const decode = decoderOf(columns)
  let query: Query | undefined
  return (db, values) => {
    query ??= build(db).toSQL()
    return db._.session.prepareQuery<Prepared>(query, undefined, undefined, true, decode).execute({ ...values })
  }
}

/** A placeholder for each of these columns, for an INSERT. */
export function placeholders<Name extends string>(...names: Name[]): Record<Name, Placeholder<Name>> {
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as Record<Name, Placeholder<Name>>
}

/** A placeholder for each of these columns, for an UPDATE: the driver gets its value as it is. */
export function assignments<Name extends string>(...names: Name[]): Record<Name, SQL> {
  return Object.fromEntries(names.map((name) => [name, sql`${sql.placeholder(name)}`])) as Record<Name, SQL>
}
