import { eq, inArray, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type ChannelProblem, type ItemStatus, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { afterPosition, cutPage, newestFirst, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'
import { isSeenLately } from '#lib/relay/state.ts'

const JOB_COLUMNS = {
  id: batchJobs.id,
  userKind: batchJobs.userKind,
  userSub: batchJobs.userSub,
  status: batchJobs.status,
  error: batchJobs.error,
  createdAt: batchJobs.createdAt,
  endedAt: batchJobs.endedAt,
  // Orders the jobs of one moment: the first 32 bits of the id as a number.
  sequence: sql<number>`('x' || left(${batchJobs.id}::text, 8))::bit(32)::bigint::float8`,
}

const ITEM_COLUMNS = {
  job: batchItems.job,
  position: batchItems.position,
  status: batchItems.status,
  recipient: batchItems.recipient,
  channel: batchItems.channel,
  attempt: batchItems.attempt,
  hash: batchItems.hash,
  error: batchItems.error,
  queuedAt: batchItems.queuedAt,
  sentAt: batchItems.sentAt,
  settledAt: batchItems.settledAt,
}

/** A transfer of a job; its amount is sealed to the relay, and not even read. */
export type ItemLine = Pick<typeof batchItems.$inferSelect, keyof typeof ITEM_COLUMNS>

/** A job of the relay's and its transfers, in order. */
export type JobLine = typeof batchJobs.$inferSelect & { sequence: number; items: ItemLine[] }

/** The jobs of everybody, newest first. */
export async function listJobs(db: Database, page: PageRequest): Promise<Page<JobLine>> {
  const position = { createdAt: batchJobs.createdAt, sequence: JOB_COLUMNS.sequence }
  const rows = await db
    .select(JOB_COLUMNS)
    .from(batchJobs)
    .where(afterPosition(position, page))
    .orderBy(...newestFirst(position))
    .limit(rowsToRead(page))
  const { items: jobs, next } = cutPage(rows, page)
  const items = await itemsOf(
    db,
    jobs.map(({ id }) => id),
  )
  return { items: jobs.map((job) => ({ ...job, items: items.get(job.id) ?? [] })), next }
}

async function itemsOf(db: Database, jobs: readonly string[]): Promise<Map<string, ItemLine[]>> {
  if (jobs.length === 0) return new Map()
  const rows = await db
    .select(ITEM_COLUMNS)
    .from(batchItems)
    .where(inArray(batchItems.job, jobs))
    .orderBy(batchItems.job, batchItems.position)
  return Map.groupBy(rows, ({ job }) => job)
}

/** A channel account of the relay: what it is at now, and what keeps it from paying. */
export interface LaneLine {
  address: string
  problem: ChannelProblem | null
  /** when a relay last said that it has the channel's key */
  seenAt: Date
  /** lately enough for one to be running with it */
  isRunning: boolean
  /** the item that it works on */
  job: string | null
  position: number | null
  status: ItemStatus | null
}

/** The lanes that run side by side, or once did. */
export async function listLanes(db: Database, token: string, now: Date): Promise<LaneLine[]> {
  const begun = db
    .select({
      channel: batchItems.channel,
      job: batchItems.job,
      position: batchItems.position,
      status: batchItems.status,
    })
    .from(batchItems)
    .where(inArray(batchItems.status, ['taken', 'signed']))
    .as('begun')
  const lanes = await db
    .select({
      address: relayChannels.address,
      problem: relayChannels.problem,
      seenAt: relayChannels.seenAt,
      job: begun.job,
      position: begun.position,
      status: begun.status,
    })
    .from(relayChannels)
    .leftJoin(begun, eq(begun.channel, relayChannels.address))
    .where(eq(relayChannels.token, token))
    .orderBy(sql`${relayChannels.address}`)
  return lanes.map((lane) => ({ ...lane, isRunning: isSeenLately(lane.seenAt, now) }))
}
