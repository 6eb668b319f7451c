import { and, asc, eq, isNotNull, isNull } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'

/**
 * Whom a batch of `count` transfers pays: the organisation's contractors that are ready, oldest first, and from the
 * start again if there are fewer. Empty without any: then each paying channel picks another channel.
 */
export async function findRecipients(db: Database, organisation: string | undefined, count: number): Promise<string[]> {
  if (organisation === undefined) return []
  const ready = await db
    .select({ address: contractors.address })
    .from(contractors)
    .where(
      and(
        eq(contractors.organisation, organisation),
        eq(contractors.status, 'ready'),
        isNotNull(contractors.address),
        isNull(contractors.deletedAt),
      ),
    )
    .orderBy(asc(contractors.createdAt), asc(contractors.sequence))
    .limit(count)
  const addresses = ready.flatMap(({ address }) => (address === null ? [] : [address]))
  if (addresses.length === 0) return []
  return Array.from({ length: count }, (_, position) => addresses[position % addresses.length] ?? '')
}
