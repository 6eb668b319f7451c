import { and, eq } from 'drizzle-orm'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'
import type { Tracker } from '#lib/transfers/track.ts'

/** How long an operator waits for the lookup (ms). */
const WAIT_MS = 5_000

/**
 * Looks up an open transfer now, even if it was looked up in this ledger. The request is recorded in the audit log, and
 * the transfer is settled as usual. Resolves to false if the transfer is not open.
 */
export async function lookUpForOperator(
  { db, now, actor, tracker }: { db: Database; now: Date; actor: Actor; tracker: Tracker },
  id: string,
): Promise<boolean> {
  if (!isId(id)) return false
  const isOpen = await transact(db, async (tx) => {
    const [open] = await tx
      .select({ organisation: transfers.organisation })
      .from(transfers)
      .where(and(eq(transfers.id, id), eq(transfers.status, 'open')))
    if (!open) return false
    const organisation = open.organisation ?? undefined
    await recordAudit(tx, now, { organisation, actor, action: 'transfer.looked-up', subject: id })
    return true
  })
  if (isOpen) await tracker.track([id], { waitMs: WAIT_MS, lookUp: 'requested' })
  return isOpen
}
