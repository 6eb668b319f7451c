import { and, asc, desc, eq, exists, gt, inArray, isNotNull, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isId } from '../ids.ts'
import { type ConfidentialAccounts, findRegistrations, lookUpRegistrations, viewingKeyOf } from './registration.ts'

/** The contractors that wait for the registration of their address. An inactive contractor does not. */
const WAITING = ['invited', 'onboarding'] as const

const waiting = and(inArray(contractors.status, WAITING), isNotNull(contractors.address), isNull(contractors.deletedAt))

/**
 * Activates those of `ids` whose address has been registered since. Asks the ledger first, and changes
 * nothing while it cannot be asked.
 */
export async function activateContractors(
  db: Database,
  accounts: ConfidentialAccounts,
  organisation: string,
  ids: readonly string[],
  { actor, now }: { actor: Actor; now: Date },
): Promise<void> {
  const known = ids.filter(isId)
  if (known.length === 0) return
  const own = and(eq(contractors.organisation, organisation), inArray(contractors.id, known))
  const candidates = await findCandidates(db, own)
  const found = await findRegistrations(accounts, candidates.map(addressOf))
  await activate(db, candidates, (candidate) => viewingKeyOf(found.get(candidate.address)), actor, now)
}

const READER: Actor = { kind: 'service', sub: 'registration check' }
/** As many as a list shows at once; the chore finds the others. */
const CHECKED_AT_ONCE = 1_000
const CHECKED_EVERY_MS = 30_000

/**
 * Activates who waits in an organisation, before its contractors are read. The ledger is asked at most once in 30
 * seconds for an organisation, by all processes together: a process records the time before it asks. While a transaction
 * holds the organisation, this read does not wait: the next one asks.
 * @param read the contractor that is read, if it is one: it is looked up also where many newer ones wait
 */
export async function activateBeforeReading(
  db: Database,
  accounts: ConfidentialAccounts,
  organisation: string,
  now: Date,
  read?: string,
): Promise<void> {
  if (accounts.token === undefined) return
  const isWaitingThere = and(eq(contractors.organisation, organisations.id), waiting)
  const isDue = db
    .select({ id: organisations.id })
    .from(organisations)
    .where(
      and(
        eq(organisations.id, organisation),
        or(
          isNull(organisations.registrationsAskedAt),
          lte(organisations.registrationsAskedAt, new Date(now.getTime() - CHECKED_EVERY_MS)),
        ),
        exists(db.select({ one: sql`1` }).from(contractors).where(isWaitingThere)),
      ),
    )
    .for('no key update', { skipLocked: true })
  const [due] = await db
    .update(organisations)
    .set({ registrationsAskedAt: now })
    .where(inArray(organisations.id, isDue))
    .returning({ id: organisations.id })
  if (!due) return
  const candidates = await findCandidates(db, eq(contractors.organisation, organisation), CHECKED_AT_ONCE, desc)
  if (read !== undefined && !candidates.some(({ id }) => id === read)) {
    candidates.push(...(await findCandidates(db, eq(contractors.id, read))))
  }
  const found = await findRegistrations(accounts, candidates.map(addressOf))
  await activate(db, candidates, (candidate) => viewingKeyOf(found.get(candidate.address)), READER, now)
}

const MAINTENANCE: Actor = { kind: 'service', sub: 'registration sweep' }
const ROWS_AT_ONCE = 200

/**
 * Looks up everybody who waits for a registration, 200 at a time, and activates who has it. Resolves to how many.
 * @throws Refusal `unavailable` while the ledger cannot be asked
 */
export async function sweepRegistrations(db: Database, accounts: ConfidentialAccounts, now: Date): Promise<number> {
  let activated = 0
  for (let last = 0; ; ) {
    const candidates = await findCandidates(db, gt(contractors.sequence, last), ROWS_AT_ONCE)
    const end = candidates.at(-1)
    if (!end) return activated
    last = end.sequence
    const found = await lookUpRegistrations(accounts, candidates.map(addressOf))
    activated += await activate(db, candidates, (one) => viewingKeyOf(found.get(one.address)), MAINTENANCE, now)
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

async function findCandidates(
  db: Database,
  which: SQL | undefined,
  limit?: number,
  order: typeof asc = asc,
): Promise<Candidate[]> {
  const query = db
    .select({
      id: contractors.id,
      sequence: contractors.sequence,
      organisation: contractors.organisation,
      address: contractors.address,
    })
    .from(contractors)
    .where(and(waiting, which))
    .orderBy(order(contractors.sequence))
  const rows = await (limit === undefined ? query : query.limit(limit))
  return rows.flatMap((row) => (row.address === null ? [] : [{ ...row, address: row.address }]))
}

/**
 * Activates all candidates in one transaction of a few statements. It leaves alone a contractor that has another address
 * by now or has stopped waiting.
 */
async function activate(
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
      return { organisation, actor, action: 'contractor.activated', subject } as const
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
