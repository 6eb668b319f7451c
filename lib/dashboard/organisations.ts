import { and, count, desc, eq, isNotNull, isNull, max, type SQL, sql } from 'drizzle-orm'
import { organisationCosts } from '#drizzle/schema/counts.ts'
import { batches, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo, MAX_COUNTED } from '#lib/db/count.ts'
import { byTime, type Order } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import type { OrganisationUser } from './attention.ts'
import { lastProgress } from './batches.ts'
import { betweenDays, DAYS, isOneOf } from './filters.ts'
import { batchLimit } from './lateness.ts'
import { type RecordList, readPart } from './list.ts'
import { RANGES, type Range } from './traffic.ts'
import { findUsers } from './users.ts'

/** An organisation with the numbers of its records. */
export interface OrganisationLine {
  id: string
  sequence: number
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
  costs: Record<Range, Costs>
}

/** The settled transfers of a range, and what the sponsor was charged for them, in stroops. */
export interface Costs {
  transfers: number
  failed: number
  fees: bigint
}

const FILTERS = { ...DAYS, sort: isOneOf(['oldest', ...Object.keys(RANGES)]) }

/** All organisations, also sorted by the fees of a range. */
export const ORGANISATIONS: RecordList<typeof FILTERS, OrganisationLine> = {
  filters: FILTERS,
  match: ({ db, now }, { sort, ...days }) => {
    const condition = betweenDays(organisations.createdAt, days)
    const lead = sort === '24h' ? 'dayFees' : sort === '30d' ? 'monthFees' : undefined
    const costs = costsOf(db, lead)
    const newest = byTime(organisations)
    const byCost: Order | undefined = lead && {
      lead: { column: costs[lead], type: 'bigint' },
      sequence: costs.sequence,
    }
    return {
      order: byCost ?? { ...newest, ascending: sort === 'oldest' },
      read: async ({ beside, ...part }) =>
        await addNumbers(db, await readPart(selectOrganisations(db, and(condition, beside), costs), part), now),
      placeOf: (row) => (lead ? [Number(row.costs[sort as Range].fees), row.sequence] : placeOf(row)),
      count: () => countUpTo(db, organisations, newest, { '': condition }),
    }
  },
}

/** The costs of all organisations, or those of the MAX_COUNTED that cost most. */
function costsOf(db: Database, lead?: 'dayFees' | 'monthFees') {
  const all = db.select().from(organisationCosts)
  if (!lead) return all.as('costs')
  const highest = [desc(organisationCosts[lead]), desc(organisationCosts.sequence)]
  return all
    .orderBy(...highest)
    .limit(MAX_COUNTED)
    .as('costs')
}

export async function findOrganisationLine(db: Database, id: string, now: Date): Promise<OrganisationLine | undefined> {
  const [organisation] = await addNumbers(db, await selectOrganisations(db, eq(organisations.id, id)), now)
  return organisation
}

function selectOrganisations(db: Database, condition: SQL | undefined, costs = costsOf(db)) {
  return db
    .select({
      id: organisations.id,
      sequence: organisations.sequence,
      name: organisations.name,
      createdAt: organisations.createdAt,
      contractors: organisations.contractorCount,
      batches: organisations.batchCount,
      '24h': { transfers: costs.dayTransfers, failed: costs.dayFailed, fees: costs.dayFees },
      '30d': { transfers: costs.monthTransfers, failed: costs.monthFailed, fees: costs.monthFees },
    })
    .from(organisations)
    .innerJoin(costs, eq(costs.organisation, organisations.id))
    .where(condition)
}

async function addNumbers(
  db: Database,
  shown: Awaited<ReturnType<typeof selectOrganisations>>,
  now: Date,
): Promise<OrganisationLine[]> {
  const ids = shown.map(({ id }) => id)
  const users = await findUsers(db, ids)
  // Current and removed contractors have separate indexes.
  const payments = await paymentsOf(db, ids, isNull)
  const formerPayments = await paymentsOf(db, ids, isNotNull)
  const work = await startedBatchesOf(db, ids, now)
  const relayPayments = await relayPaymentsOf(db, ids)
  return shown.map(({ '24h': day, '30d': month, ...organisation }) => ({
    ...organisation,
    costs: { '24h': day, '30d': month },
    users: users.get(organisation.id) ?? [],
    lastPaidAt: latest([payments, formerPayments, relayPayments].map((times) => times.get(organisation.id))),
    started: work.get(organisation.id)?.started ?? 0,
    stalled: work.get(organisation.id)?.stalled ?? 0,
  }))
}

/**
 * Returns when each organisation's payouts were last paid.
 * @param isOfContractors `isNull` for payouts to its current contractors, `isNotNull` for those to removed ones
 */
async function paymentsOf(db: Database, ids: string[], isOfContractors: typeof isNull | typeof isNotNull) {
  const rows = await db
    .select({ organisation: contractors.organisation, at: max(contractors.lastPaidAt) })
    .from(contractors)
    .where(and(sql`${contractors.organisation} = any(${asArray(ids)})`, isOfContractors(contractors.deletedAt)))
    .groupBy(contractors.organisation)
  return new Map(rows.map(({ organisation, at }) => [organisation, at]))
}

async function startedBatchesOf(db: Database, ids: string[], now: Date) {
  const isStalled = sql`${lastProgress} < ${batchLimit(now).toISOString()}::timestamptz`
  const rows = await db
    .select({
      organisation: batches.organisation,
      started: count(),
      stalled: sql`count(*) filter (where ${isStalled})`.mapWith(Number),
    })
    .from(batches)
    .where(and(eq(batches.status, 'started'), sql`${batches.organisation} = any(${asArray(ids)})`))
    .groupBy(batches.organisation)
  return new Map(rows.map((row) => [row.organisation, row]))
}

/** Returns when a relay job last paid for each organisation. The payments of runs are those of their payouts. */
async function relayPaymentsOf(db: Database, ids: string[]) {
  const rows = await db
    .select({ organisation: identities.organisation, at: max(relayLines.settledAt) })
    .from(identities)
    .innerJoin(relayJobs, and(eq(relayJobs.userKind, identities.kind), eq(relayJobs.userSub, identities.sub)))
    .innerJoin(relayLines, eq(relayLines.job, relayJobs.id))
    .where(
      and(
        sql`${identities.organisation} = any(${asArray(ids)})`,
        isNull(relayJobs.batch),
        eq(relayLines.outcome, 'paid'),
      ),
    )
    .groupBy(identities.organisation)
  return new Map(rows.map(({ organisation, at }) => [organisation, at]))
}

const latest = (times: readonly (Date | null | undefined)[]) =>
  times.reduce<Date | null>((last, at = null) => (last === null || (at !== null && at > last) ? at : last), null)

const asArray = (ids: readonly string[]) => sql`${`{${ids.join(',')}}`}::uuid[]`
