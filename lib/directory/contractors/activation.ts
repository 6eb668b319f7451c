import { and, asc, desc, eq, exists, gt, inArray, isNotNull, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import type { DirectoryContext, EmployerContext } from '../context.ts'
import { isId } from '../ids.ts'
import { findViewingKeys, lookUpViewingKeys, type ViewingKeys } from './registration.ts'

/** A contractor in one of these statuses becomes `ready` once its address is registered. */
const WAITING = ['invited', 'onboarding'] as const

const isWaiting = and(
  inArray(contractors.status, WAITING),
  isNotNull(contractors.address),
  isNull(contractors.deletedAt),
)

/** Activates the employer's contractors `ids` whose address is now registered; none if the ledger is unreachable. */
export async function activateContractors(context: EmployerContext, ids: readonly string[]): Promise<void> {
  const { organisation, actor } = context.employer
  const valid = ids.filter(isId)
  if (valid.length === 0) return
  const isOwn = and(eq(contractors.organisation, organisation), inArray(contractors.id, valid))
  const candidates = await findCandidates(context.db, isOwn)
  await activate(context, candidates, await findViewingKeys(context.accounts, candidates.map(addressOf)), actor)
}

const READER: Actor = { kind: 'service', sub: 'registration check' }
/**
 * The maximum number of contractors to look up before a read: as many as a list returns. The chore looks up the others.
 */
const CHECK_LIMIT = 1_000
const CHECK_INTERVAL_MS = 30_000

/**
 * Activates an organisation's waiting contractors before they are read. Across all processes, an organisation's
 * registrations are looked up at most once in 30 seconds: a process records the time before it queries the ledger. If
 * another transaction has locked the organisation, this read skips the lookup.
 * @param read.contractor the only contractor that is read: it is looked up even if many newer ones are waiting
 */
export async function activateBeforeReading(
  context: DirectoryContext,
  { organisation, contractor }: { organisation: string; contractor?: string },
): Promise<void> {
  const { db, accounts, now } = context
  if (accounts.token === undefined) return
  const isWaitingThere = and(eq(contractors.organisation, organisations.id), isWaiting)
  const dueOrganisation = db
    .select({ id: organisations.id })
    .from(organisations)
    .where(
      and(
        eq(organisations.id, organisation),
        or(
          isNull(organisations.registrationsAskedAt),
          lte(organisations.registrationsAskedAt, new Date(now.getTime() - CHECK_INTERVAL_MS)),
        ),
        exists(db.select({ one: sql`1` }).from(contractors).where(isWaitingThere)),
      ),
    )
    .for('no key update', { skipLocked: true })
  const [due] = await db
    .update(organisations)
    .set({ registrationsAskedAt: now })
    .where(inArray(organisations.id, dueOrganisation))
    .returning({ id: organisations.id })
  if (!due) return
  const candidates = await findCandidates(db, eq(contractors.organisation, organisation), CHECK_LIMIT, desc)
  if (contractor !== undefined && !candidates.some(({ id }) => id === contractor)) {
    candidates.push(...(await findCandidates(db, eq(contractors.id, contractor))))
  }
  await activate(context, candidates, await findViewingKeys(accounts, candidates.map(addressOf)), READER)
}

const MAINTENANCE: Actor = { kind: 'service', sub: 'registration sweep' }
const SWEEP_SIZE = 200
/** The maximum number of chunks in a sweep. Each takes one RPC call. */
const SWEEP_PARTS = 5

/**
 * Looks up the next 1,000 waiting contractors, 200 at a time, and activates those with a registered address.
 * @param after the sequence of the last contractor that an earlier sweep has looked up; 0 to begin with the oldest
 * @returns how many it activated, and where the next sweep continues: with the oldest again if none is left
 * @throws LedgerError `unavailable` while the ledger cannot be reached
 */
export async function sweepRegistrations(
  context: DirectoryContext,
  after = 0,
): Promise<{ activated: number; after: number }> {
  let activated = 0
  let last = after
  for (let part = 0; part < SWEEP_PARTS; part += 1) {
    const candidates = await findCandidates(context.db, gt(contractors.sequence, last), SWEEP_SIZE)
    const viewingKeys = await lookUpViewingKeys(context.accounts, candidates.map(addressOf))
    activated += await activate(context, candidates, viewingKeys, MAINTENANCE)
    last = candidates.at(-1)?.sequence ?? 0
    if (candidates.length < SWEEP_SIZE) return { activated, after: 0 }
  }
  return { activated, after: last }
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
  condition: SQL | undefined,
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
    .where(and(isWaiting, condition))
    .orderBy(order(contractors.sequence))
  const rows = await (limit === undefined ? query : query.limit(limit))
  return rows.flatMap((row) => (row.address === null ? [] : [{ ...row, address: row.address }]))
}

/**
 * Activates the registered candidates in one transaction of a few statements. Skips a contractor whose address has
 * changed or who is no longer waiting. Resolves to how many it activated.
 */
async function activate(
  { db, now }: DirectoryContext,
  candidates: readonly Candidate[],
  viewingKeys: ViewingKeys,
  actor: Actor,
): Promise<number> {
  const registered = candidates.filter(({ address }) => viewingKeys.get(address))
  if (registered.length === 0) return 0
  return await transact(db, async (tx) => {
    // Every transaction locks contractors in the order of their ids, which prevents deadlocks.
    const locked = await tx
      .select({ id: contractors.id, address: contractors.address })
      .from(contractors)
      .where(and(isWaiting, inArray(contractors.id, registered.map(idOf))))
      .orderBy(contractors.id)
      .for('no key update')
    const addresses = new Map(locked.map(({ id, address }) => [id, address]))
    const due = registered.filter(({ id, address }) => addresses.get(id) === address)
    if (due.length === 0) return 0
    const keys = JSON.stringify(Object.fromEntries(due.map(({ id, address }) => [id, viewingKeys.get(address)])))
    await tx
      .update(contractors)
      .set({ status: 'ready', pvk: sql`${keys}::jsonb ->> ${contractors.id}::text` })
      .where(inArray(contractors.id, due.map(idOf)))
    const action = 'contractor.activated'
    await recordAudit(
      tx,
      now,
      ...due.map(({ id, organisation }) => ({ organisation, actor, action, subject: id }) as const),
    )
    return due.length
  })
}
