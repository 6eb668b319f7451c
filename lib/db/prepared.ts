import type { Database } from './connection.ts'

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
