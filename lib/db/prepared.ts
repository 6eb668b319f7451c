import { createHash } from 'node:crypto'
import { type Placeholder, type Query, type SQL, sql } from 'drizzle-orm'
import type { Database } from './connection.ts'
import { type Columns, decoderOf, type Row } from './rows.ts'

/**
 * A query that is built once per database and prepared once per connection, so that running it for every request costs
 * only its execution. Each transaction is a `Database` too, and rebuilds the query.
 */
export function preparedOnce<Query extends object>(prepare: (db: Database) => Query): (db: Database) => Query {
  const prepared = new WeakMap<Database, Query>()
  return (db) => {
    const cached = prepared.get(db)
    if (cached) return cached
    const query = prepare(db)
    prepared.set(db, query)
    return query
  }
}

/**
 * A query that is built once, and prepared once per connection under `name`. Unlike one of `preparedOnce`, it also runs in
 * transactions. Building a query takes drizzle longer than the driver takes to run it. A digest of the text is part of the
 * name: behind a pooler, another version of the service may have prepared another text on the same connection.
 * @param columns what it selects or returns, in this order
 * @param name undefined: the statement is planned for the values of each call, and not prepared
 * @param build uses a placeholder for each value. Pass a value for each; use null for NULL.
 */
export function statement<Selected extends Columns>(
  name: string | undefined,
  columns: Selected,
  build: (db: Database) => { toSQL(): Query },
): (db: Database, values: Readonly<Record<string, unknown>>) => Promise<Row<Selected>[]> {
  type Prepared = { execute: Row<Selected>[]; all: never; values: never }
  const decode = decoderOf(columns)
  let query: Query | undefined
  let prepared: string | undefined
  return (db, values) => {
    if (!query) {
      query = build(db).toSQL()
      const digest = createHash('sha256').update(query.sql).digest('hex').slice(0, 8)
      prepared = name && `${name}_${digest}`
    }
    return db._.session.prepareQuery<Prepared>(query, undefined, prepared, true, decode).execute({ ...values })
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
