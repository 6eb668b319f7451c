import { randomBytes } from 'node:crypto'
import { and, asc, eq, gt, inArray, isNotNull, lt, max, ne, notExists, or, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { auditLog } from '#drizzle/schema/audit.ts'
import type { AuditAction } from '#drizzle/schema/audit-actions.ts'
import { chores } from '#drizzle/schema/chores.ts'
import { events } from '#drizzle/schema/events.ts'
import { envelopes } from '#drizzle/schema/transfers.ts'
import { firstAround } from '#lib/db/audit-sequence.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { type EventType, TYPE_OF_ACTION } from './event.ts'
import { readData } from './event-data.ts'

/** The advisory lock of the publisher: one transaction at a time numbers events. */
const LOCK = 7_220_130_419_663_202n

/** How many entries a round publishes. */
const ROUND = 1_000

/** The row of `chores` whose `after` is the sequence up to which every entry has been published. */
const STATE = 'events'

const ACTIONS = Object.keys(TYPE_OF_ACTION) as AuditAction[]

/**
 * A sequence of the log, and the transactions that were in progress when it was its last one. Once they have ended, no entry with
 * a lower sequence can appear any more. Never stored: transaction ids begin anew in a database that is restored from a dump.
 */
interface Horizon {
  sequence: number
  /** the publisher's own transaction id at that time: those of all transactions in progress were lower */
  end: bigint
  at: number
}

/**
 * A statement takes its sequence an instant before its transaction has an id. Longer than the limit of every statement of the
 * service (pool.ts), so that such a transaction has ended, too.
 */
const SETTLED_MS = 30_000

const horizons = perProcess('event horizons', () => new WeakMap<Database, Horizon>())

/**
 * Numbers the committed entries of the audit log that are not yet events, at most 1,000, in the order of the log. An entry whose
 * transaction commits later than those after it is published then. Resolves to the number of new events; 0 if another publisher
 * is at it.
 */
export async function publishEvents(db: Database, now = Date.now()): Promise<number> {
  return await transact(db, async (tx) => {
    const [lock] = await tx
      .select({ isOurs: sql<boolean>`pg_try_advisory_xact_lock(${LOCK})` })
      .from(sql`(select 1) as one`)
    if (!lock?.isOurs) return 0
    const [state] = await tx.select({ through: chores.after }).from(chores).where(eq(chores.name, STATE))
    const through = state?.through ?? 0
    const settled = await moveHorizon(tx, db, now)
    const entries = await readUnpublished(tx, through)
    const published = await insertEvents(tx, entries)
    if (entries.length < ROUND && settled > through) {
      const after = { begunAt: sql`clock_timestamp()`, after: settled }
      await tx
        .insert(chores)
        .values({ name: STATE, ...after })
        .onConflictDoUpdate({ target: chores.name, set: after })
    }
    return published
  })
}

/** Longer than a transaction of the service can take, and by how much the clocks of hosts may differ. */
const CERTAIN_MS = 60 * 60_000

/**
 * A sequence below which no entry can appear any more. Where no process stays for long, or a transaction of another database never
 * ends, it is that of the entries from before the last hours.
 */
async function moveHorizon(tx: Database, db: Database, now: number): Promise<number> {
  const [snapshot] = await tx
    .select({
      oldest: sql`pg_snapshot_xmin(pg_current_snapshot())::text`.mapWith(BigInt),
      sequence: sql`coalesce((select max(${auditLog.sequence}) from ${auditLog}), 0)`.mapWith(Number),
      end: sql`pg_current_xact_id()::text`.mapWith(BigInt),
    })
    .from(sql`(select 1) as one`)
  // Not one less than the first of the last hours: an entry that is not visible yet may have that number.
  const isOld = lt(auditLog.sequence, await firstAround(tx, new Date(now - CERTAIN_MS)))
  const [old] = await tx
    .select({ sequence: max(auditLog.sequence) })
    .from(auditLog)
    .where(isOld)
  const certain = old?.sequence ?? 0
  const horizon = horizons.get(db)
  if (!snapshot) return certain
  const isSettled = horizon && snapshot.oldest >= horizon.end && now - horizon.at >= SETTLED_MS
  if (!horizon || isSettled) horizons.set(db, { sequence: snapshot.sequence, end: snapshot.end, at: now })
  return isSettled ? Math.max(horizon.sequence, certain) : certain
}

interface Entry {
  sequence: number
  organisation: string | null
  action: AuditAction
  subject: string
  payout: string | null
  at: Date
}

async function readUnpublished(tx: Database, through: number): Promise<Entry[]> {
  const isPublished = tx.select({ entry: events.entry }).from(events).where(eq(events.entry, auditLog.sequence))
  const payout = sql<string | null>`${auditLog.detail} ->> 'payout'`
  const first = alias(envelopes, 'first')
  const own = alias(envelopes, 'own')
  const earlier = alias(auditLog, 'earlier')
  // A transfer may have several envelopes, and each has an entry: the payout is pending from the first one on that names it.
  const isRepeated = tx
    .select({ hash: own.innerHash })
    .from(own)
    .innerJoin(first, and(eq(first.transfer, own.transfer), lt(first.recordedAt, own.recordedAt)))
    .innerJoin(earlier, and(eq(earlier.action, 'transfer.sponsored'), eq(earlier.subjectId, first.innerHash)))
    .where(
      and(
        eq(auditLog.action, 'transfer.sponsored'),
        eq(own.innerHash, auditLog.subjectId),
        eq(sql`${earlier.detail} ->> 'payout'`, payout),
      ),
    )
  return await tx
    .select({
      sequence: auditLog.sequence,
      organisation: auditLog.organisation,
      action: auditLog.action,
      subject: auditLog.subjectId,
      payout,
      at: auditLog.at,
    })
    .from(auditLog)
    .where(
      and(
        gt(auditLog.sequence, through),
        inArray(auditLog.action, ACTIONS),
        // A transfer that pays no payout is no event.
        or(ne(auditLog.action, 'transfer.sponsored'), isNotNull(payout)),
        isNotNull(auditLog.organisation),
        notExists(isPublished),
        notExists(isRepeated),
      ),
    )
    .orderBy(asc(auditLog.sequence))
    .limit(ROUND)
}

/** An entry with its type and the id of the record that it is about. */
interface Typed extends Entry {
  type: EventType
  record: string
}

function typedOf(entry: Entry): Typed[] {
  const type = TYPE_OF_ACTION[entry.action]
  const record = entry.action === 'transfer.sponsored' ? entry.payout : entry.subject
  return type && record !== null ? [{ ...entry, type, record }] : []
}

async function insertEvents(tx: Database, entries: readonly Entry[]): Promise<number> {
  const typed = entries.flatMap(typedOf)
  if (typed.length === 0) return 0
  const dataOf = await readData(tx, typed)
  const rows = typed.map((entry) => {
    const { payee, ...data } = dataOf(entry)
    return {
      token: randomBytes(8).toString('hex'),
      entry: entry.sequence,
      organisation: entry.organisation ?? '',
      payee: payee ?? null,
      type: entry.type,
      data,
      createdAt: entry.at,
    }
  })
  for (const part of partsOf(rows)) await tx.insert(events).values(part)
  return rows.length
}
