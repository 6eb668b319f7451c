import { type Database, databaseFailure } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

/** The result of `read`, or undefined while the database cannot be reached: a page then says that, and nothing else. */
export async function readIfReachable<Found>(
  open: () => Promise<Database>,
  read: (db: Database) => Promise<Found>,
): Promise<Found | undefined> {
  try {
    return await read(await open())
  } catch (error) {
    const failure = databaseFailure(error)
    if (failure instanceof Refusal && failure.code === 'unavailable') return undefined
    throw error
  }
}
