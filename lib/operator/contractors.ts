import { and, eq, isNull, sql } from 'drizzle-orm'
import { CONTRACTOR_STATUSES, type ContractorStatus, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { afterPosition, cutPage, newestFirst, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'

const POSITION = { createdAt: contractors.createdAt, sequence: contractors.sequence }

const COLUMNS = {
  ...POSITION,
  id: contractors.id,
  name: contractors.name,
  organisationName: organisations.name,
  status: contractors.status,
  email: contractors.email,
  address: contractors.address,
  isRegistered: sql<boolean>`${contractors.pvk} is not null`,
  isLinked: sql<boolean>`${contractors.linkedSub} is not null`,
  lastPaidAt: contractors.lastPaidAt,
}

/** A contractor as the operator sees it: no rate, which would tell what somebody is paid. */
export interface ContractorLine {
  id: string
  name: string
  organisationName: string
  status: ContractorStatus
  email: string | null
  address: string | null
  /** the address had a viewing key on the ledger when it was last looked up */
  isRegistered: boolean
  /** a user has accepted the invite */
  isLinked: boolean
  lastPaidAt: Date | null
  createdAt: Date
  sequence: number
}

/** The status that `text` names. */
export function contractorStatusOf(text: string): ContractorStatus | undefined {
  return CONTRACTOR_STATUSES.find((status) => status === text)
}

/** The contractors of all organisations, newest first. */
export async function listAllContractors(
  db: Database,
  { status }: { status: ContractorStatus | undefined },
  page: PageRequest,
): Promise<Page<ContractorLine>> {
  const rows = await db
    .select(COLUMNS)
    .from(contractors)
    .innerJoin(organisations, eq(organisations.id, contractors.organisation))
    .where(and(isNull(contractors.deletedAt), status && eq(contractors.status, status), afterPosition(POSITION, page)))
    .orderBy(...newestFirst(POSITION))
    .limit(rowsToRead(page))
  return cutPage(rows, page)
}
