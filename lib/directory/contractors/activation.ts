import { and, asc, eq, gt, inArray, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { isId } from '../ids.ts'
import { findRegistrations, lookUpRegistrations, type Registry, viewingKeyOf } from './registration.ts'

/** Who waits for the registration of an address. Somebody inactive does not. */
const WAITING = ['invited', 'onboarding'] as const

const waiting = and(inArray(contractors.status, WAITING), isNotNull(contractors.address), isNull(contractors.deletedAt))

/**
 * Makes those of `ids` ready whose address has been registered since the last look. Asks the ledger first, and changes
 * nothing while it cannot be asked.
 */
export async function promoteContractors(
  db: Database,
  registry: Registry,
  organisation: string,
  ids: readonly string[],
  { actor, now }: { actor: Actor; now: Date },
): Promise<void> {
  const known = ids.filter(isId)
  if (known.length === 0) return
  const candidates = await findCandidates(
    db,
    and(eq(contractors.organisation, organisation), inArray(contractors.id, known)),
  )
  const found = await findRegistrations(registry, candidates.map(addressOf))
  await promote(db, candidates, (candidate) => viewingKeyOf(found.get(candidate.address)), actor, now)
}

const SWEEPER: Actor = { kind: 'service', sub: 'registration sweep' }
const ROWS_AT_ONCE = 200

/**
 * Looks up everybody who waits for a registration, 200 at a time, and makes ready who has it. Resolves to how many.
 * @throws Refusal unavailable while the ledger cannot be asked
 */
export async function sweepRegistrations(db: Database, registry: Registry, now: Date): Promise<number> {
  let promoted = 0
  for (let last = 0; ; ) {
    const candidates = await findCandidates(db, gt(contractors.sequence, last), ROWS_AT_ONCE)
    const end = candidates.at(-1)
    if (!end) return promoted
    last = end.sequence
    const found = await lookUpRegistrations(registry, candidates.map(addressOf))
    promoted += await promote(db, candidates, (one) => viewingKeyOf(found.get(one.address)), SWEEPER, now)
  }
}

/** Sweeps every `everyMs` milliseconds, one at a time, until it is closed. */
export function openRegistrationSweep(
  given: { database(): Promise<Database>; now(): Date; registry: Registry },
  everyMs = 60_000,
): { close(): Promise<void> } {
  let running = Promise.resolve()
  let busy = false
  const sweep = async () => {
    try {
      await sweepRegistrations(await given.database(), given.registry, given.now())
    } catch (error) {
      log('error', 'registration sweep', { failure: describeFailure(error) })
    } finally {
      busy = false
    }
  }
  const timer = setInterval(() => {
    if (busy) return
    busy = true
    running = sweep()
  }, everyMs)
  timer.unref()
  return {
    close: async () => {
      clearInterval(timer)
      await running
    },
  }
}

interface Candidate {
  id: string
  sequence: number
  organisation: string
  address: string
}

const addressOf = ({ address }: Candidate) => address
const idOf = ({ id }: Candidate) => id

async function findCandidates(db: Database, which: SQL | undefined, limit?: number): Promise<Candidate[]> {
  const query = db
    .select({
      id: contractors.id,
      sequence: contractors.sequence,
      organisation: contractors.organisation,
      address: contractors.address,
    })
    .from(contractors)
    .where(and(waiting, which))
    .orderBy(asc(contractors.sequence))
  const rows = await (limit === undefined ? query : query.limit(limit))
  return rows.flatMap((row) => (row.address === null ? [] : [{ ...row, address: row.address }]))
}

/**
 * One transaction of a few statements, however many there are. Whoever has another address by now, or is waiting no
 * more, is left alone.
 */
async function promote(
  db: Database,
  candidates: readonly Candidate[],
  keyOf: (candidate: Candidate) => string | undefined,
  actor: Actor,
  now: Date,
): Promise<number> {
  const registered = new Map(
    candidates.flatMap((candidate) => {
      const pvk = keyOf(candidate)
      return pvk === undefined ? [] : [[candidate.id, { ...candidate, pvk }] as const]
    }),
  )
  if (registered.size === 0) return 0
  return await transact(db, async (tx) => {
    const held = await holdWaiting(tx, [...registered.keys()])
    const due = held.flatMap(({ id, address }) => {
      const candidate = registered.get(id)
      return candidate?.address === address ? [candidate] : []
    })
    if (due.length === 0) return 0
    const keys = JSON.stringify(Object.fromEntries(due.map(({ id, pvk }) => [id, pvk])))
    await tx
      .update(contractors)
      .set({ status: 'ready', pvk: sql`${keys}::jsonb ->> ${contractors.id}::text` })
      .where(inArray(contractors.id, due.map(idOf)))
    const entries = due.map(({ id, organisation }) => {
      const subject = { kind: 'contractor', id } as const
      return { organisation, actor, action: 'contractor.promoted', subject } as const
    })
    await recordAudit(tx, now, ...entries)
    return due.length
  })
}

/** Locks those of `ids` who still wait, in the order of ids, as everybody who locks several contractors does. */
function holdWaiting(tx: Database, ids: string[]): Promise<{ id: string; address: string | null }[]> {
  return tx
    .select({ id: contractors.id, address: contractors.address })
    .from(contractors)
    .where(and(waiting, inArray(contractors.id, ids)))
    .orderBy(contractors.id)
    .for('no key update')
}
