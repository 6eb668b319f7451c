import { and, count, desc, eq, max, or, sql } from 'drizzle-orm'
import { batches, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { contains } from '#lib/db/search.ts'
import type { OrganisationUser } from './attention.ts'
import { lastProgress } from './batches.ts'
import { batchLimit } from './lateness.ts'
import { type List, type ListRequest, readPage } from './list.ts'
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
  const ofUser = db
    .select({ id: identities.organisation })
    .from(identities)
    .where(contains(q, identities.email, identities.sub))
  const own = contains(q, organisations.name, organisations.id)
  const within = own && or(own, sql`${organisations.id} in ${ofUser}`)
  const [counted] = await db.select({ count: count() }).from(organisations).where(within)
  return await readPage(new Map([['', counted?.count ?? 0]]), { status: '', page }, async ({ limit, offset }) => {
    const shown = await db
      .select({ id: organisations.id, name: organisations.name, createdAt: organisations.createdAt })
      .from(organisations)
      .where(within)
      .orderBy(desc(organisations.createdAt), desc(organisations.id))
      .limit(limit)
      .offset(offset)
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
  })
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
