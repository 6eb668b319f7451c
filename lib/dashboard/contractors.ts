import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { CONTRACTOR_STATUSES, type ContractorStatus, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { byTime } from '#lib/db/keyset.ts'
import { BY_TIME, betweenDays, having, isOneOf, isRecordId } from './filters.ts'
import { listTable } from './list.ts'

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

/** The contractors of all organisations, without removed ones. */
export const CONTRACTORS = listTable({
  filters: { status: isOneOf(CONTRACTOR_STATUSES), organisation: isRecordId, ...BY_TIME },
  table: contractors,
  newest: byTime(contractors),
  status: contractors.status,
  conditionOf: (_, { organisation, ...days }) =>
    and(
      isNull(contractors.deletedAt),
      having(contractors.organisation, organisation),
      betweenDays(contractors.createdAt, days),
    ),
  read: async ({ db }, { condition, order, limit }): Promise<ContractorLine[]> =>
    await selectContractors(db, condition)
      .orderBy(...order)
      .limit(limit),
})

/** Finds a contractor, even a removed one. */
export async function findContractorLine(db: Database, id: string): Promise<ContractorLine | undefined> {
  const [contractor] = await selectContractors(db, eq(contractors.id, id))
  return contractor
}

const ofContractor = eq(organisations.id, contractors.organisation)

function selectContractors(db: Database, condition: SQL | undefined) {
  return db.select(COLUMNS).from(contractors).innerJoin(organisations, ofContractor).where(condition)
}
