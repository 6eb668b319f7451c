import { and, count, desc, eq, max, or, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import type { OrganisationUser } from './attention.ts'
import { lastProgress } from './batches.ts'
import { batchLimit } from './lateness.ts'
import { afterRow, type List, type ListRequest, PART_SIZE, readPage } from './list.ts'
import { findUsers } from './users.ts'

/** An organisation with the numbers of its records. */
export interface OrganisationLine {
  id: string
  name: string
  createdAt: Date
  users: OrganisationUser[]
  contractors: number
  batches: number
  /** batches in progress, and how many of them have stalled */
  started: number
  stalled: number
  /** by a payout or a relay job */
  lastPaidAt: Date | null
}

/** Lists all organisations, newest first. */
export async function listOrganisations(
  db: Database,
  { q, page }: Pick<ListRequest, 'q' | 'page'>,
  now: Date,
): Promise<List<OrganisationLine>> {
  const within = containingText(db, q)
  const [counted] = await db.select({ count: count() }).from(organisations).where(within)
  return await readPage(new Map([['', counted?.count ?? 0]]), { status: '', page }, async ({ limit, offset }) =>
    addNumbers(db, await selectOrganisations(db, within).limit(limit).offset(offset), now),
  )
}

export async function findOrganisationLine(db: Database, id: string, now: Date): Promise<OrganisationLine | undefined> {
  const [organisation] = await addNumbers(db, await selectOrganisations(db, eq(organisations.id, id)), now)
  return organisation
}

/** Reads the organisations that match the search, newest first, in parts of at most `size`. */
export function readOrganisations(db: Database, { q }: Pick<ListRequest, 'q'>, now: Date, size = PART_SIZE) {
  const within = containingText(db, q)
  const read = async (last: OrganisationLine | undefined) => {
    const condition = and(within, last && afterRow(organisations, last))
    return await addNumbers(db, await selectOrganisations(db, condition).limit(size), now)
  }
  return readInParts(read, size)
}

function selectOrganisations(db: Database, condition: SQL | undefined) {
  return db
    .select({ id: organisations.id, name: organisations.name, createdAt: organisations.createdAt })
    .from(organisations)
    .where(condition)
    .orderBy(desc(organisations.createdAt), desc(organisations.id))
}

/** Matches a part of the name, the id, or the email or wallet of a user. */
function containingText(db: Database, q: string): SQL | undefined {
  const ofUser = db
    .select({ id: identities.organisation })
    .from(identities)
    .where(contains(q, identities.email, identities.sub))
  const own = contains(q, organisations.name, organisations.id)
  return own && or(own, sql`${organisations.id} in ${ofUser}`)
}

async function addNumbers(
  db: Database,
  shown: Awaited<ReturnType<typeof selectOrganisations>>,
  now: Date,
): Promise<OrganisationLine[]> {
  const ids = shown.map(({ id }) => id)
  const [users, staff, work, relayPayments] = await Promise.all([
    findUsers(db, ids),
    contractorsOf(db, ids),
    batchesOf(db, ids, now),
    relayPaymentsOf(db, ids),
  ])
  return shown.map((organisation) => ({
    ...organisation,
    users: users.get(organisation.id) ?? [],
    contractors: staff.get(organisation.id)?.count ?? 0,
    lastPaidAt: latest(staff.get(organisation.id)?.lastPaidAt, relayPayments.get(organisation.id)),
    batches: work.get(organisation.id)?.count ?? 0,
    started: work.get(organisation.id)?.started ?? 0,
    stalled: work.get(organisation.id)?.stalled ?? 0,
  }))
}

async function contractorsOf(db: Database, ids: string[]) {
  const rows = await db
    .select({ organisation: contractors.organisation, count: count(), lastPaidAt: max(contractors.lastPaidAt) })
    .from(contractors)
    .where(and(sql`${contractors.organisation} = any(${asArray(ids)})`, sql`${contractors.deletedAt} is null`))
    .groupBy(contractors.organisation)
  return new Map(rows.map((row) => [row.organisation, row]))
}

async function batchesOf(db: Database, ids: string[], now: Date) {
  const isStarted = eq(batches.status, 'started')
  const isStalled = sql`${lastProgress} < ${batchLimit(now).toISOString()}::timestamptz`
  const rows = await db
    .select({
      organisation: batches.organisation,
      count: count(),
      started: sql`count(*) filter (where ${isStarted})`.mapWith(Number),
      stalled: sql`count(*) filter (where ${isStarted} and ${isStalled})`.mapWith(Number),
    })
    .from(batches)
    .where(sql`${batches.organisation} = any(${asArray(ids)})`)
    .groupBy(batches.organisation)
  return new Map(rows.map((row) => [row.organisation, row]))
}

/** Returns when a relay job last paid for each organisation. */
async function relayPaymentsOf(db: Database, ids: string[]) {
  const rows = await db
    .select({ organisation: identities.organisation, at: max(batchItems.settledAt) })
    .from(identities)
    .innerJoin(batchJobs, and(eq(batchJobs.userKind, identities.kind), eq(batchJobs.userSub, identities.sub)))
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .where(and(sql`${identities.organisation} = any(${asArray(ids)})`, eq(batchItems.status, 'paid')))
    .groupBy(identities.organisation)
  return new Map(rows.map(({ organisation, at }) => [organisation, at]))
}

const latest = (one: Date | null = null, other: Date | null = null) =>
  one === null || (other !== null && other > one) ? other : one

const asArray = (ids: readonly string[]) => sql`${`{${ids.join(',')}}`}::uuid[]`
