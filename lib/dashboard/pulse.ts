import { max, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { batches } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'

/** The state that an open page polls to decide whether to reload. */
export interface Pulse {
  /** changes whenever a record does */
  version: string
  /** a batch or job is in progress, so changes are likely soon */
  isOpen: boolean
}

/** Every change of a record appends to the audit log, except the moves of job items, which are read separately. */
export async function readPulse(db: Database): Promise<Pulse> {
  const items = sql`select concat(count(*), ' ', max(greatest(${batchItems.queuedAt}, ${batchItems.sentAt}, ${batchItems.settledAt})))
    from ${batchItems} join ${batchJobs} on ${batchJobs.id} = ${batchItems.job} where ${batchJobs.status} = 'running'`
  const isOpen = sql`exists (select 1 from ${batches} where ${batches.status} = 'started')
    or exists (select 1 from ${batchJobs} where ${batchJobs.status} = 'running')`
  const [row] = await db
    .select({ last: max(auditLog.sequence), items: sql<string>`(${items})`, isOpen: sql<boolean>`(${isOpen})` })
    .from(auditLog)
  return { version: `${row?.last} ${row?.items}`, isOpen: row?.isOpen ?? false }
}
