import { and, asc, desc, eq, exists, gt, inArray, isNotNull, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { isId } from '../ids.ts'
import type { EmployerContext } from '../user.ts'
import { findViewingKeys, type LedgerContext, lookUpViewingKeys, type ViewingKeys } from './registration.ts'

/** The contractors that wait for the registration of their address. An inactive contractor does not. */
const WAITING = ['invited', 'onboarding'] as const

const waiting = and(inArray(contractors.status, WAITING), isNotNull(contractors.address), isNull(contractors.deletedAt))

/** The context of an activation, in a chore or before a read. */
interface ActivationContext extends LedgerContext {
  db: Database
  now: Date
}

/**
 * Activates those of the employer's contractors `ids` whose address has been registered since. Asks the ledger first,
 * and changes nothing while it cannot be asked.
 */
export async function activateContractors(
  context: EmployerContext & LedgerContext,
  ids: readonly string[],
): Promise<void> {
  const { organisation, actor } = context.employer
  const known = ids.filter(isId)
  if (known.length === 0) return
  const own = and(eq(contractors.organisation, organisation), inArray(contractors.id, known))
  const candidates = await findCandidates(context.db, own)
  await activate(context, candidates, await findViewingKeys(context.accounts, candidates.map(addressOf)), actor)
}

const READER: Actor = { kind: 'service', sub: 'registration check' }
/** As many contractors as a list shows at once; the chore checks the others. */
const CHECKED_AT_ONCE = 1_000
const CHECKED_EVERY_MS = 30_000

/**
 * Activates an organisation's waiting contractors before they are read. All processes together ask the ledger at most
 * once in 30 seconds for an organisation: a process records the time before it asks. If a transaction has locked the
 * organisation, this read does not wait for it, and a later read asks.
 * @param read.contractor the contractor that is read, if only one is: it is checked even if many newer ones wait
 */
export async function activateBeforeReading(
  context: ActivationContext,
  { organisation, contractor }: { organisation: string; contractor?: string },
): Promise<void> {
  const { db, accounts, now } = context
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
  if (contractor !== undefined && !candidates.some(({ id }) => id === contractor)) {
    candidates.push(...(await findCandidates(db, eq(contractors.id, contractor))))
  }
  await activate(context, candidates, await findViewingKeys(accounts, candidates.map(addressOf)), READER)
}

const MAINTENANCE: Actor = { kind: 'service', sub: 'registration sweep' }
const SWEPT_AT_ONCE = 200

/**
 * Looks up all waiting contractors, 200 at a time, and activates those with a registered address. Resolves to how many.
 * @throws LedgerError `unavailable` while the ledger cannot be asked
 */
export async function sweepRegistrations(context: ActivationContext): Promise<number> {
  let activated = 0
  for (let last = 0; ; ) {
    const candidates = await findCandidates(context.db, gt(contractors.sequence, last), SWEPT_AT_ONCE)
    const end = candidates.at(-1)
    if (!end) return activated
    last = end.sequence
    const found = await lookUpViewingKeys(context.accounts, candidates.map(addressOf))
    activated += await activate(context, candidates, found, MAINTENANCE)
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
 * Activates the registered candidates in one transaction of a few statements. It leaves alone a contractor that has
 * another address by now or has stopped waiting. Resolves to how many there were.
 */
async function activate(
  { db, now }: ActivationContext,
  candidates: readonly Candidate[],
  found: ViewingKeys,
  actor: Actor,
): Promise<number> {
  const registered = candidates.filter(({ address }) => found.get(address))
  if (registered.length === 0) return 0
  return await transact(db, async (tx) => {
    // Every transaction locks contractors in the order of ids, so that no two wait for each other.
    const held = await tx
      .select({ id: contractors.id, address: contractors.address })
      .from(contractors)
      .where(and(waiting, inArray(contractors.id, registered.map(idOf))))
      .orderBy(contractors.id)
      .for('no key update')
    const addresses = new Map(held.map(({ id, address }) => [id, address]))
    const due = registered.filter(({ id, address }) => addresses.get(id) === address)
    if (due.length === 0) return 0
    const keys = JSON.stringify(Object.fromEntries(due.map(({ id, address }) => [id, found.get(address)])))
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
