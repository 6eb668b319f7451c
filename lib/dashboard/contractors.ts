import { and, count, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { CONTRACTOR_STATUSES, type ContractorStatus, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { afterPosition, newestFirst, readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { countsOf, type Filters, type List, type ListRequest, ofOrganisation, PART_SIZE, readPage } from './list.ts'

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
  /** at the last look-up of its address */
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

/** Lists the contractors of all organisations, newest first. */
export async function listContractors(db: Database, request: ListRequest): Promise<List<ContractorLine>> {
  const { within, shown, status } = conditionsOf(request)
  const counted = await db
    .select({ value: contractors.status, count: count() })
    .from(contractors)
    .innerJoin(organisations, ofContractor)
    .where(within)
    .groupBy(contractors.status)
  return await readPage(countsOf(counted), { ...request, status: status ?? '' }, ({ limit, offset }) =>
    selectContractors(db, shown).limit(limit).offset(offset),
  )
}

/** Finds a contractor, even a removed one. */
export async function findContractorLine(db: Database, id: string): Promise<ContractorLine | undefined> {
  const [contractor] = await selectContractors(db, eq(contractors.id, id))
  return contractor
}

/** Reads the contractors that match the filters, newest first, in parts of at most `size`. */
export function readContractors(db: Database, filters: Filters<ListRequest>, size = PART_SIZE) {
  const { shown } = conditionsOf(filters)
  const read = async (after: ContractorLine | undefined) =>
    await selectContractors(db, and(shown, afterPosition(contractors, { after }))).limit(size)
  return readInParts(read, size)
}

const ofContractor = eq(organisations.id, contractors.organisation)

function selectContractors(db: Database, condition: SQL | undefined) {
  return db
    .select(COLUMNS)
    .from(contractors)
    .innerJoin(organisations, ofContractor)
    .where(condition)
    .orderBy(...newestFirst(contractors))
}

/** The conditions of a list: with its status (`shown`) and without it (`within`). */
function conditionsOf(filters: Filters<ListRequest>) {
  const status = CONTRACTOR_STATUSES.find((name) => name === filters.status)
  const within = and(
    isNull(contractors.deletedAt),
    ofOrganisation(contractors.organisation, filters.organisation),
    contains(filters.q, contractors.name, contractors.email, contractors.address, organisations.name),
  )
  return { status, within, shown: and(within, status && eq(contractors.status, status)) }
}

/** Finds the name of a contractor, even a removed one. */
export async function findContractorName(db: Database, id: string): Promise<string | undefined> {
  const [contractor] = await db
    .select({ name: contractors.name })
    .from(contractors)
    .where(sql`${contractors.id}::text = ${id.replaceAll('\0', '')}`)
  return contractor?.name
}
