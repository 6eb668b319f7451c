import { sql } from 'drizzle-orm'
import type { Database } from './connection.ts'

/** The database's clock, unix ms: hosts' clocks may be minutes off. */
export async function readClock(db: Database): Promise<number> {
  const now = sql<number>`extract(epoch FROM clock_timestamp()) * 1000`.mapWith(Number)
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
