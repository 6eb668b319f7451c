import { and, eq, isNull, lt, or, sql } from 'drizzle-orm'
import { archiveStreams } from '#drizzle/schema/archive.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Stream } from './streams.ts'

/** How long (s) a process has exclusive use of a stream, restarted with each page. */
const CLAIM_SECONDS = 30

const CLAIM = sql`clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS})`

/** Undefined while another process ingests the stream. A claim left by a process that ended expires. */
export async function claim(db: Database, { id }: Stream): Promise<Date | null | undefined> {
  const isFree = or(isNull(archiveStreams.claimedUntil), lt(archiveStreams.claimedUntil, sql`clock_timestamp()`))
  const [claimed] = await db
    .update(archiveStreams)
    .set({ claimedUntil: CLAIM })
    .where(and(eq(archiveStreams.id, id), isFree))
    .returning({ until: archiveStreams.claimedUntil })
  return claimed?.until
}

export async function extendClaim(db: Database, { id }: Stream): Promise<Date | null | undefined> {
  const [extended] = await db
    .update(archiveStreams)
    .set({ claimedUntil: CLAIM })
    .where(eq(archiveStreams.id, id))
    .returning({ until: archiveStreams.claimedUntil })
  return extended?.until
}

/** Releases the stream, unless the claim expired and another process has claimed it since. */
export async function releaseClaim(db: Database, { id }: Stream, until: Date | null | undefined): Promise<void> {
  if (!until) return
  await db
    .update(archiveStreams)
    .set({ claimedUntil: null })
    .where(and(eq(archiveStreams.id, id), eq(archiveStreams.claimedUntil, until)))
}
