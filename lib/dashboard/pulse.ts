import { max, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { batches } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'

/** The state that an open page polls to decide whether to reload. */
export interface Pulse {
  /** changes whenever a record does */
  version: string
  /** a batch or job is in progress, so changes are likely soon */
  isOpen: boolean
}

/**
 * Every change of a record appends to the audit log, except the start of a job, and the end of an item that was never
 * sent: these change the last or the number of the open items, which are counted up to MAX_COUNTED.
 */
export async function readPulse(db: Database): Promise<Pulse> {
  const { queuedAt } = relayLines
  const open = sql`select ${queuedAt} from ${relayLines} where ${IS_OPEN_LINE} order by ${queuedAt} desc limit ${MAX_COUNTED + 1}`
  const items = sql`select concat(count(*), ' ', max(queued_at)) from (${open}) as open`
  const isOpen = sql`exists (select 1 from ${batches} where ${batches.status} = 'started')
    or exists (select 1 from ${relayJobs} where ${relayJobs.status} = 'running')`
  const [row] = await db
    .select({ last: max(auditLog.sequence), items: sql<string>`(${items})`, isOpen: sql<boolean>`(${isOpen})` })
    .from(auditLog)
  return { version: `${row?.last} ${row?.items}`, isOpen: row?.isOpen ?? false }
}
