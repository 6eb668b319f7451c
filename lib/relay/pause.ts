import { and, eq } from 'drizzle-orm'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isChannel } from './channel-state.ts'

/** An operator, who gives a reason. */
interface OperatorContext {
  db: Database
  now: Date
  actor: Actor
}

type Named = { token: string; address: string; note: string }

/**
 * Pauses or resumes a channel. A paused channel finishes its payment and leases no line. Resolves to false, without an
 * entry in the audit log, if there is nothing to change.
 * @param note the operator's reason
 */
export async function pauseChannel(
  context: OperatorContext,
  { isPaused, ...named }: Named & { isPaused: boolean },
): Promise<boolean> {
  const action = isPaused ? 'channel.paused' : 'channel.resumed'
  return await change(context, named, {
    action,
    columns: { paused: isPaused },
    condition: eq(relayChannels.paused, !isPaused),
  })
}

/** Retires a channel: it pays nothing more, and is not compared with the ledger any more. False if that is so already. */
export async function retireChannel(context: OperatorContext, named: Named): Promise<boolean> {
  return await change(context, named, {
    action: 'channel.retired',
    columns: { retired: true, reconcileProblem: null, hasUnknownPurpose: false },
    condition: eq(relayChannels.retired, false),
  })
}

async function change(
  { db, now, actor }: OperatorContext,
  { token, address, note }: Named,
  {
    action,
    columns,
    condition,
  }: {
    action: 'channel.paused' | 'channel.resumed' | 'channel.retired'
    columns: Partial<typeof relayChannels.$inferInsert>
    condition: ReturnType<typeof eq>
  },
): Promise<boolean> {
  return await transact(db, async (tx) => {
    const changed = await tx
      .update(relayChannels)
      .set(columns)
      .where(and(isChannel(token, address), condition))
      .returning({ address: relayChannels.address })
    if (changed.length === 0) return false
    await recordAudit(tx, now, { organisation: undefined, actor, action, subject: address, detail: { note } })
    return true
  })
}
