import { type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Database } from './connection.ts'
import { type Order, orderedBy } from './keyset.ts'

/** Lists count up to this number of records: counting all of them would read all of them. */
export const MAX_COUNTED = 10_000

/** Counts the rows of each condition, up to one more than MAX_COUNTED, in the order of the list's index. */
export async function countUpTo<Name extends string>(
  db: Database,
  table: PgTable,
  order: Order,
  conditions: Record<Name, SQL | undefined>,
): Promise<Map<string, number>> {
  const names = Object.keys(conditions) as Name[]
  const counted = names.map((name) => {
    const rows = sql`select 1 from ${table} where ${conditions[name] ?? sql`true`} order by ${sql.join(orderedBy(order), sql`, `)} limit ${MAX_COUNTED + 1}`
    return [name, sql`(select count(*) from (${rows}) as counted)`.mapWith(Number)] as const
  })
  const [row] = await db.select(Object.fromEntries(counted)).from(sql`(values (1)) as one`)
  return new Map(names.map((name) => [name, Number(row?.[name] ?? 0)]))
}
