import { lt } from 'drizzle-orm'
import { usedChallenges } from '#drizzle/schema/transfers.ts'
import { type Database, databaseFailure } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Challenge } from './verification.ts'

/** How long a hash outlives its challenge, in ms: more than the clocks of two instances will ever differ. */
const REMEMBERED_AFTER = 600_000

/**
 * Takes the one use that a challenge has. It is keyed by transaction hash, for the same challenge has many encodings,
 * and it is one statement, so that of parallel requests exactly one gets past it. It comes after every other check:
 * otherwise a stranger's bad copy, or an outage, would use up the challenge of an honest wallet.
 * @throws Refusal `challenge-used`, `unavailable`
 */
export async function claimChallenge(db: Database, challenge: Pick<Challenge, 'hash' | 'expiresAt'>): Promise<void> {
  const claimed = await db
    .insert(usedChallenges)
    .values({
      hash: Buffer.from(challenge.hash).toString('hex'),
      expiresAt: new Date(challenge.expiresAt.getTime() + REMEMBERED_AFTER),
    })
    .onConflictDoNothing()
    .returning({ hash: usedChallenges.hash })
    .catch((error: unknown) => {
      throw databaseFailure(error)
    })
  if (claimed.length === 0) throw new Refusal('challenge-used', 'invalid challenge: it has been used already')
}

/** Forgets the challenges that are long past use. Resolves to how many. */
export async function purgeUsedChallenges(db: Database, now: Date): Promise<number> {
  const forgotten = await db
    .delete(usedChallenges)
    .where(lt(usedChallenges.expiresAt, now))
    .returning({ hash: usedChallenges.hash })
  return forgotten.length
}
