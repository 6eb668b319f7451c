import { and, eq, inArray, isNotNull, lt } from 'drizzle-orm'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'

/** How long the XDR of envelopes is kept after their transfer ends (ms), and how many a round erases at most. */
const KEPT_MS = 24 * 60 * 60_000
const MAX_ERASED = 1_000

/** Erases the XDR of the oldest envelopes whose transfers ended a day ago. Resolves to how many it erased. */
export async function eraseOldEnvelopes(db: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - KEPT_MS)
  // The limit keeps the plan to the index of the envelopes that still have their XDR.
  const oldest = db
    .select({ innerHash: envelopes.innerHash })
    .from(envelopes)
    .innerJoin(transfers, and(eq(transfers.id, envelopes.transfer), lt(transfers.settledAt, before)))
    .where(and(isNotNull(envelopes.signed), lt(envelopes.recordedAt, before)))
    .orderBy(envelopes.recordedAt)
    .limit(MAX_ERASED)
  const none = { signed: null, sealedOpening: null }
  const isOldest = inArray(envelopes.innerHash, oldest)
  return (await db.update(envelopes).set(none).where(isOldest).returning({ innerHash: envelopes.innerHash })).length
}
