import { sql } from 'drizzle-orm'
import type { Database } from './connection.ts'

/** A time by the database's clock, unix ms. It is another type than a time of the ledger, so that no two clocks are compared. */
export type DatabaseTime = number & { readonly clock: 'database' }

/** The database's clock: hosts' clocks may be minutes off. */
export async function readClock(db: Database): Promise<DatabaseTime> {
  const now = sql`extract(epoch FROM clock_timestamp()) * 1000`.mapWith((time) => Number(time) as DatabaseTime)
  const [row] = await db.select({ now }).from(sql`(VALUES (1)) AS one`)
  if (!row) throw new Error('the database returned no time')
  return row.now
}

/** The current time by the database's clock, or by this process's own while the database cannot be reached. */
export async function readPresent({ database, now }: { database(): Promise<Database>; now(): Date }): Promise<Date> {
  try {
    return new Date(await readClock(await database()))
  } catch {
    return now()
  }
}
