import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { CONTRACTOR_STATUSES, type ContractorStatus, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo } from '#lib/db/count.ts'
import { byTime } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import { BY_TIME, betweenDays, type Filters, having, isOneOf, isRecordId } from './filters.ts'
import { byStatus, type List, type PageRequest, readAll, readPage, type Source, totals } from './list.ts'

const COLUMNS = {
  id: contractors.id,
  name: contractors.name,
  organisation: contractors.organisation,
  organisationName: organisations.name,
  status: contractors.status,
  email: contractors.email,
  address: contractors.address,
  isRegistered: sql<boolean>`${contractors.pvk} is not null`,
  isLinked: sql<boolean>`${contractors.linkedSub} is not null`,
  invitedUntil:
    sql<Date | null>`case when ${contractors.inviteVersion} > 0 and ${contractors.status} <> 'inactive' then ${contractors.inviteExpiresAt} end`.mapWith(
      contractors.inviteExpiresAt,
    ),
  lastPaidAt: contractors.lastPaidAt,
  createdAt: contractors.createdAt,
  deletedAt: contractors.deletedAt,
  sequence: contractors.sequence,
}

/** A contractor without its rate, which would reveal its pay to the operator. */
export interface ContractorLine {
  id: string
  name: string
  organisation: string
  organisationName: string
  status: ContractorStatus
  email: string | null
  address: string | null
  /** at the last lookup of its address */
  isRegistered: boolean
  /** whether a user has accepted the invite */
  isLinked: boolean
  /** when the latest invite expires; null if none was sent */
  invitedUntil: Date | null
  lastPaidAt: Date | null
  createdAt: Date
  /** when the employer removed it */
  deletedAt: Date | null
  sequence: number
}

export const CONTRACTOR_FILTERS = {
  status: isOneOf(CONTRACTOR_STATUSES),
  organisation: isRecordId,
  ...BY_TIME,
}

export type ContractorFilters = Filters<typeof CONTRACTOR_FILTERS>

/** Lists the contractors of all organisations, without removed ones. */
export async function listContractors(
  db: Database,
  filters: ContractorFilters,
  page: PageRequest,
): Promise<List<ContractorLine>> {
  const within = conditionOf(filters)
  const tabs = byStatus(CONTRACTOR_STATUSES, (status) => and(within, eq(contractors.status, status)))
  const counts = await countUpTo(db, contractors, byTime(contractors), tabs)
  const part = await readPage(sourceOf(db, filters), page)
  return { ...part, ...totals(counts, filters.status) }
}

/** Finds a contractor, even a removed one. */
export async function findContractorLine(db: Database, id: string): Promise<ContractorLine | undefined> {
  const [contractor] = await selectContractors(db, eq(contractors.id, id))
  return contractor
}

/** Reads the contractors that match the filters, newest first, in chunks of at most `size`. */
export const readContractors = (db: Database, filters: ContractorFilters, size?: number) =>
  readAll(sourceOf(db, { ...filters, sort: '' }), size)

function sourceOf(db: Database, filters: ContractorFilters): Source<ContractorLine> {
  const condition = and(conditionOf(filters), having(contractors.status, filters.status))
  return {
    order: { ...byTime(contractors), ascending: filters.sort === 'oldest' },
    read: async ({ beside, order, limit }) =>
      await selectContractors(db, and(condition, beside))
        .orderBy(...order)
        .limit(limit),
    placeOf,
  }
}

/** The condition of a list without its status. */
const conditionOf = ({ organisation, ...days }: ContractorFilters): SQL | undefined =>
  and(
    isNull(contractors.deletedAt),
    having(contractors.organisation, organisation),
    betweenDays(contractors.createdAt, days),
  )

const ofContractor = eq(organisations.id, contractors.organisation)

function selectContractors(db: Database, condition: SQL | undefined) {
  return db.select(COLUMNS).from(contractors).innerJoin(organisations, ofContractor).where(condition)
}
