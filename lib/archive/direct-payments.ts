import { and, eq, gt, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { archiveEventAccounts, archiveEvents } from '#drizzle/schema/archive.ts'
import { envelopes } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { addressOf, presentEvent } from './event.ts'
import { openArchive } from './history.ts'

/**
 * Whether an account has paid another one itself, in a transfer after this time that no row of the service knows, as far as the
 * archive has been ingested.
 */
export async function hasPaidDirectly(
  db: Database,
  token: string,
  { from, to, since }: { from: string; to: string; since: Date },
): Promise<boolean> {
  const archive = await openArchive(db, token)
  if (!archive) return false
  const payee = alias(archiveEventAccounts, 'payee')
  const { stream, toid, eventIndex, account } = archiveEventAccounts
  const isSame = and(eq(payee.stream, stream), eq(payee.toid, toid), eq(payee.eventIndex, eventIndex))
  const hash = sql`encode(${archiveEvents.txHash}, 'hex')`
  const rows = await db
    .select({ event: archiveEvents })
    .from(archiveEventAccounts)
    .innerJoin(payee, and(isSame, eq(payee.account, to)))
    .innerJoin(
      archiveEvents,
      and(eq(archiveEvents.stream, stream), eq(archiveEvents.toid, toid), eq(archiveEvents.eventIndex, eventIndex)),
    )
    .where(
      and(
        eq(stream, archive.token.id),
        eq(account, from),
        eq(archiveEvents.type, 'transfer'),
        gt(archiveEvents.closedAt, Math.floor(since.getTime() / 1000)),
        sql`not exists (select from ${envelopes} where ${envelopes.innerHash} = ${hash} or ${envelopes.outerHash} = ${hash})`,
      ),
    )
  return rows.some(({ event }) => {
    const [, payer] = presentEvent(event, token).topics_xdr
    return payer !== undefined && addressOf(payer) === from
  })
}
