import { type Database, databaseFailure } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

/** Reads what a page shows. Resolves to undefined while the database cannot be reached, so that the page can say so. */
export async function readIfReachable<Result>(
  open: () => Promise<Database>,
  read: (db: Database) => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await read(readOnly(await open()))
  } catch (error) {
    const failure = databaseFailure(error)
    if (failure instanceof Refusal && failure.code === 'unavailable') return undefined
    throw error
  }
}
