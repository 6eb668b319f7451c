import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { CONTRACTOR_STATUSES, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { byTime } from '#lib/db/keyset.ts'
import { BY_TIME, betweenDays, having, isOneOf, isRecordId } from './filters.ts'
import { listTable, onlyRow, orNull, type RowOf } from './list.ts'

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
  select: selectContractors,
})

/** Finds a contractor, even a removed one. */
export const findContractorLine = (db: Database, id: string) => onlyRow(selectContractors(db, eq(contractors.id, id)))

/** A contractor without its rate, which would reveal its pay to the operator. */
export type ContractorLine = RowOf<typeof selectContractors>

function selectContractors(db: Database, condition: SQL | undefined) {
  const { inviteVersion, inviteExpiresAt } = contractors
  const invitedUntil = sql`case when ${inviteVersion} > 0 and ${contractors.status} <> 'inactive' then ${inviteExpiresAt} end`
  return db
    .select({
      id: contractors.id,
      name: contractors.name,
      externalId: contractors.externalId,
      organisation: contractors.organisation,
      organisationName: organisations.name,
      status: contractors.status,
      email: contractors.email,
      address: contractors.address,
      /** at the last lookup of its address */
      isRegistered: sql<boolean>`${contractors.pvk} is not null`,
      /** whether a user has accepted the invite */
      isLinked: sql<boolean>`${contractors.linkedSub} is not null`,
      /** when the latest invite expires; null if none was sent */
      invitedUntil: orNull(invitedUntil.mapWith(inviteExpiresAt)),
      lastPaidAt: contractors.lastPaidAt,
      createdAt: contractors.createdAt,
      /** when the employer removed it */
      deletedAt: contractors.deletedAt,
      sequence: contractors.sequence,
    })
    .from(contractors)
    .innerJoin(organisations, eq(organisations.id, contractors.organisation))
    .where(condition)
}
