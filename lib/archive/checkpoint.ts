import { and, asc, desc, eq, sql } from 'drizzle-orm'
import { archiveEventAccounts, type EventRole } from '#drizzle/schema/archive.ts'
import type { Database } from '#lib/db/connection.ts'
import { type EventRow, presentEvent } from './event.ts'
import { type Archive, MAX_INDEX, type Positioned, readRows } from './history.ts'
import { covers } from './ranges.ts'
import { ledgerOf } from './source.ts'

/** Where the replay of an account's balance begins. */
interface Checkpoint {
  /** the last event that carries the whole spendable balance; null if the account has none */
  event: ReturnType<typeof presentEvent> | null
  /** the last merge or clawback at or before it, or the registration: from there the receiving balance is replayed */
  anchor: ReturnType<typeof presentEvent> | null
  /** true if every ledger is in the archive from the checkpoint, or from the registration without one, to `atLedger` */
  complete: boolean
}

export async function readCheckpoint(
  db: Database,
  archive: Archive,
  account: string,
  atLedger: number,
): Promise<Checkpoint> {
  const end = { toid: (BigInt(atLedger) << 32n) | 0xffff_ffffn, eventIndex: MAX_INDEX }
  const checkpoint = await edgeOf(db, archive, { account, role: 'checkpoint', end, order: desc })
  const anchor = await edgeOf(
    db,
    archive,
    checkpoint
      ? { account, role: 'anchor', end: checkpoint, order: desc }
      : { account, role: 'anchor', end, order: asc },
  )
  const isRegistered = anchor?.type === 'register'
  const start = checkpoint ?? (isRegistered ? anchor : undefined)
  const contract = archive.token.contract
  return {
    event: checkpoint ? presentEvent(checkpoint, contract) : null,
    anchor: anchor && (checkpoint || isRegistered) ? presentEvent(anchor, contract) : null,
    complete: start !== undefined && covers(archive.ranges, ledgerOf(start.toid), atLedger),
  }
}

/** The first or last event of a role in an account's history, at or before `end`. */
async function edgeOf(
  db: Database,
  { token }: Archive,
  { account, role, end, order }: { account: string; role: EventRole; end: Positioned; order: typeof asc },
): Promise<EventRow | undefined> {
  const { toid, eventIndex } = archiveEventAccounts
  const [position] = await db
    .select({ toid, eventIndex })
    .from(archiveEventAccounts)
    .where(
      and(
        eq(archiveEventAccounts.stream, token.id),
        eq(archiveEventAccounts.account, account),
        eq(archiveEventAccounts.role, role),
        sql`(${toid}, ${eventIndex}) <= (${end.toid}, ${end.eventIndex})`,
      ),
    )
    .orderBy(order(toid), order(eventIndex))
    .limit(1)
  const [row] = position ? await readRows(db, token, [position]) : []
  return row
}
