import { and, eq } from 'drizzle-orm'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isChannel } from './channel-state.ts'

const { paused, retired } = relayChannels

/** What an operator can do to a channel, and to which. */
const CHANGES = {
  /** It finishes its payment and leases no line. */
  paused: { columns: { paused: true }, condition: eq(paused, false) },
  resumed: { columns: { paused: false }, condition: eq(paused, true) },
  /** It pays nothing more, and is not compared with the ledger any more. */
  retired: {
    columns: { retired: true, reconcileProblem: null, hasUnknownPurpose: false },
    condition: eq(retired, false),
  },
}

/**
 * Pauses, resumes or retires a channel. Resolves to false, without an entry in the audit log, if there is nothing to change.
 * @param given.note the operator's reason
 */
export async function changeChannel(
  { db, now, actor }: { db: Database; now: Date; actor: Actor },
  { token, address, change, note }: { token: string; address: string; change: keyof typeof CHANGES; note: string },
): Promise<boolean> {
  const { columns, condition } = CHANGES[change]
  return await transact(db, async (tx) => {
    const isThis = and(isChannel(token, address), condition)
    const changed = await tx
      .update(relayChannels)
      .set(columns)
      .where(isThis)
      .returning({ address: relayChannels.address })
    if (changed.length === 0) return false
    const entry = { organisation: undefined, actor, action: `channel.${change}` as const, subject: address }
    await recordAudit(tx, now, { ...entry, detail: { note } })
    return true
  })
}
