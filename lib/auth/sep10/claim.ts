import { inArray, lt } from 'drizzle-orm'
import { usedChallenges } from '#drizzle/schema/transfers.ts'
import { type Database, databaseFailure } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Challenge } from './verification.ts'

/** How long to keep a hash after its challenge has expired: longer than the clocks of two instances ever differ by. */
const KEPT_AFTER_EXPIRY_MS = 600_000

/**
 * Claims the single use of a challenge by its transaction hash, because a challenge has many encodings. One statement, so
 * exactly one of several concurrent requests succeeds. Runs after every other check: otherwise a stranger's invalid copy
 * or an outage would use up the challenge of an honest wallet.
 * @throws Refusal `challenge-used`, `unavailable`
 */
export async function claimChallenge(db: Database, challenge: Pick<Challenge, 'hash' | 'expiresAt'>): Promise<void> {
  const claimed = await db
    .insert(usedChallenges)
    .values({
      hash: Buffer.from(challenge.hash).toString('hex'),
      expiresAt: new Date(challenge.expiresAt.getTime() + KEPT_AFTER_EXPIRY_MS),
    })
    .onConflictDoNothing()
    .returning({ hash: usedChallenges.hash })
    .catch((error: unknown) => {
      throw databaseFailure(error)
    })
  if (claimed.length === 0) throw new Refusal('challenge-used')
}

/** The maximum number of challenges that a round deletes. */
const MAX_DELETED = 1_000

/** Deletes the oldest expired challenges. Resolves to how many. */
export async function purgeUsedChallenges(db: Database, now: Date): Promise<number> {
  const oldest = db
    .select({ hash: usedChallenges.hash })
    .from(usedChallenges)
    .where(lt(usedChallenges.expiresAt, now))
    .orderBy(usedChallenges.expiresAt)
    .limit(MAX_DELETED)
  const deleted = await db
    .delete(usedChallenges)
    .where(inArray(usedChallenges.hash, oldest))
    .returning({ hash: usedChallenges.hash })
  return deleted.length
}
