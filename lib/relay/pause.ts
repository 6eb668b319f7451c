import { and, eq } from 'drizzle-orm'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isChannel } from './channel-state.ts'

/**
 * Pauses or resumes a channel. A paused channel finishes its payment and leases no line. Resolves to false, without an
 * entry in the audit log, if there is nothing to change.
 * @param note the operator's reason
 */
export async function pauseChannel(
  { db, now, actor }: { db: Database; now: Date; actor: Actor },
  { token, address, isPaused, note }: { token: string; address: string; isPaused: boolean; note: string },
): Promise<boolean> {
  return await transact(db, async (tx) => {
    const changed = await tx
      .update(relayChannels)
      .set({ paused: isPaused })
      .where(and(isChannel(token, address), eq(relayChannels.paused, !isPaused)))
      .returning({ address: relayChannels.address })
    if (changed.length === 0) return false
    await recordAudit(tx, now, {
      organisation: undefined,
      actor,
      action: isPaused ? 'channel.paused' : 'channel.resumed',
      subject: address,
      detail: { note },
    })
    return true
  })
}
