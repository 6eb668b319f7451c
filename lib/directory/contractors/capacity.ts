import { eq } from 'drizzle-orm'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'

/** How many contractors an organisation has at most. */
const CAPACITY = 50_000

/** What says so where there is no room. */
export const FULL = 'an organisation has at most 50,000 contractors; remove some first'

/**
 * For how many more contractors an organisation has room. Who makes contractors of one organisation at the same time takes
 * turns, so that all of them together find no more room than there is.
 */
export async function roomFor(tx: Database, organisation: string): Promise<number> {
  const [there] = await tx
    .select({ contractors: organisations.contractorCount })
    .from(organisations)
    .where(eq(organisations.id, organisation))
    .for('no key update')
  return Math.max(0, CAPACITY - (there?.contractors ?? 0))
}
