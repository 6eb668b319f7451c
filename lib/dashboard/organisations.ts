import { and, count, desc, eq, inArray, isNotNull, isNull, max, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn } from 'drizzle-orm/pg-core'
import { organisationCosts } from '#drizzle/schema/counts.ts'
import { batches, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo, MAX_COUNTED } from '#lib/db/count.ts'
import { byTime, type Order } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import type { OrganisationUser } from './attention.ts'
import { betweenDays, DAYS, isOneOf } from './filters.ts'
import { isLate, isUnfinished } from './lateness.ts'
import { countOf, onlyRow, type RecordList, readPart } from './list.ts'
import { RANGES, type Range } from './traffic.ts'

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

export const findOrganisationLine = async (db: Database, id: string, now: Date) =>
  await onlyRow(addNumbers(db, await selectOrganisations(db, eq(organisations.id, id)), now))

function selectOrganisations(db: Database, condition: SQL | undefined, costs = costsOf(db)) {
  return db
    .select({
      id: organisations.id,
      sequence: organisations.sequence,
      name: organisations.name,
      createdAt: organisations.createdAt,
      contractors: organisations.contractorCount,
      batches: organisations.batchCount,
      /** the settled transfers of a range, and what the sponsor was charged for them, in stroops */
      '24h': { transfers: costs.dayTransfers, failed: costs.dayFailed, fees: costs.dayFees },
      '30d': { transfers: costs.monthTransfers, failed: costs.monthFailed, fees: costs.monthFees },
    })
    .from(organisations)
    .innerJoin(costs, eq(costs.organisation, organisations.id))
    .where(condition)
}

/** An organisation with the numbers of its records. */
export type OrganisationLine = Awaited<ReturnType<typeof addNumbers>>[number]

async function addNumbers(db: Database, shown: Awaited<ReturnType<typeof selectOrganisations>>, now: Date) {
  const ids = shown.map(({ id }) => id)
  const users = await findUsers(db, ids)
  const payments = await lastPaymentsOf(db, ids)
  const work = await startedBatchesOf(db, ids, now)
  return shown.map(({ '24h': day, '30d': month, ...organisation }) => ({
    ...organisation,
    costs: { '24h': day, '30d': month },
    users: users.get(organisation.id) ?? [],
    /** by a payout or a relay job */
    lastPaidAt: latest(payments.map((times) => times.get(organisation.id))),
    /** batches in progress, and how many of them have stalled */
    started: work.get(organisation.id)?.started ?? 0,
    stalled: work.get(organisation.id)?.stalled ?? 0,
  }))
}

/** Finds the users of organisations, by organisation. */
export async function findUsers(db: Database, ids: readonly string[]): Promise<Map<string, OrganisationUser[]>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .select({ organisation: identities.organisation, sub: identities.sub, email: identities.email })
    .from(identities)
    .where(inArray(identities.organisation, [...new Set(ids)]))
    .orderBy(identities.createdAt, identities.sub)
  const grouped = Map.groupBy(rows, ({ organisation }) => organisation ?? '')
  return new Map([...grouped].map(([id, users]) => [id, users.map(({ sub, email }) => ({ sub, email }))]))
}

/** When organisations last paid: current contractors, removed ones, which have a separate index, and by relay jobs. */
async function lastPaymentsOf(db: Database, ids: string[]): Promise<Map<string | null, Date | null>[]> {
  const { organisation, lastPaidAt, deletedAt } = contractors
  const payouts = [isNull, isNotNull].map((isOfContractors) =>
    db
      .select({ organisation, at: max(lastPaidAt) })
      .from(contractors)
      .where(and(isAnyOf(organisation, ids), isOfContractors(deletedAt)))
      .groupBy(organisation),
  )
  // The payments of runs are those of their payouts.
  const jobs = db
    .select({ organisation: identities.organisation, at: max(relayLines.settledAt) })
    .from(identities)
    .innerJoin(relayJobs, and(eq(relayJobs.userKind, identities.kind), eq(relayJobs.userSub, identities.sub)))
    .innerJoin(relayLines, eq(relayLines.job, relayJobs.id))
    .where(and(isAnyOf(identities.organisation, ids), isNull(relayJobs.batch), eq(relayLines.outcome, 'paid')))
    .groupBy(identities.organisation)
  const found: { organisation: string | null; at: Date | null }[][] = []
  for (const query of [...payouts, jobs]) found.push(await query)
  return found.map((rows) => new Map(rows.map((row) => [row.organisation, row.at])))
}

async function startedBatchesOf(db: Database, ids: string[], now: Date) {
  const { organisation } = batches
  const rows = await db
    .select({ organisation, started: count(), stalled: countOf(sql`${isLate('batch', now)}`) })
    .from(batches)
    .where(and(isUnfinished('batch'), isAnyOf(organisation, ids)))
    .groupBy(organisation)
  return new Map(rows.map((row) => [row.organisation, row]))
}

const latest = (times: readonly (Date | null | undefined)[]) =>
  times.reduce<Date | null>((last, at = null) => (last === null || (at !== null && at > last) ? at : last), null)

const isAnyOf = (column: AnyPgColumn, ids: readonly string[]) => sql`${column} = any(${`{${ids.join(',')}}`}::uuid[])`
