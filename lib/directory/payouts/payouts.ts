import { and, eq, gte, inArray, lt, type Placeholder, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import { PAYOUT_STATUSES, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { preparedOnce } from '#lib/db/prepared.ts'
import { rowsOf } from '#lib/db/rows.ts'
import {
  afterPosition,
  cutPage,
  newestFirst,
  type Page,
  type PageRequest,
  pageQuery,
  rowsToRead,
} from '#lib/http/paging.ts'
import { isId } from '../ids.ts'
import type { User } from '../user.ts'

export const payoutShape = z.object({
  id: z.string(),
  batchId: z.string(),
  contractorId: z.string(),
  status: z.enum(PAYOUT_STATUSES),
  createdAt: z.iso.datetime(),
  address: z.string().optional().meta({ description: 'the contractor’s address when it was instructed' }),
  txHash: z.string().optional().meta({ description: 'hash of the transaction that pays it, once paid' }),
  error: z.string().optional().meta({ description: 'why it failed' }),
  encryptedAmount: z.string().optional().meta({ description: 'as it came: opaque to the service' }),
  paidAt: z.iso.datetime().optional(),
})
export type Payout = z.output<typeof payoutShape>

export const payoutsShape = z.object({ payouts: z.array(payoutShape) })

/** What PostgreSQL and ISO 8601 both write with four digits. */
const YEARS = { first: 1, last: 9999 }

const moment = (name: string) =>
  z
    .union([z.iso.date(), z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })], {
      error: `${name} must be an ISO 8601 date or date-time`,
    })
    .transform((text) => new Date(text))
    .refine((date) => date.getUTCFullYear() >= YEARS.first && date.getUTCFullYear() <= YEARS.last, {
      error: `${name} must be an ISO 8601 date or date-time`,
    })

/** `from` is inclusive, `to` exclusive; both speak of createdAt. */
export const payoutsQuery = pageQuery.extend({
  batchId: z.string().optional().meta({ description: 'those of this batch' }),
  contractorId: z.string().optional().meta({ description: 'those of this contractor' }),
  status: z
    .enum(PAYOUT_STATUSES, `status must be one of ${PAYOUT_STATUSES.join(', ')}`)
    .optional()
    .meta({ description: 'those in this status' }),
  from: moment('from').optional().meta({ description: 'those made at this moment or later' }),
  to: moment('to').optional().meta({ description: 'those made before this moment' }),
})
export type PayoutFilters = Omit<z.output<typeof payoutsQuery>, 'limit' | 'cursor'>

/** Whose payouts a user may see: those of an organisation, and those made out to contractor records. */
export interface PayoutViewer {
  organisation: string | undefined
  contractors: readonly string[]
  /** all whose payouts these can be */
  organisations: readonly string[]
}

/** What of the payouts a user may see. */
export function viewerOf({ organisation, records }: Pick<User, 'organisation' | 'records'>): PayoutViewer {
  const own = organisation ? [organisation.id] : []
  return {
    organisation: organisation?.id,
    contractors: records.map(({ id }) => id),
    organisations: [...new Set([...own, ...records.map((record) => record.organisation)])],
  }
}

export const PAYOUT_COLUMNS = {
  id: payouts.id,
  batch: payouts.batch,
  contractor: payouts.contractor,
  status: payouts.status,
  address: payouts.address,
  encryptedAmount: payouts.encryptedAmount,
  txHash: payouts.txHash,
  error: payouts.error,
  createdAt: payouts.createdAt,
  paidAt: payouts.paidAt,
}

type PayoutRow = Pick<typeof payouts.$inferSelect, keyof typeof PAYOUT_COLUMNS>

/** The payouts that a viewer may see, newest first. An id that nothing has makes an empty list. */
export async function listPayouts(
  db: Database,
  viewer: Pick<PayoutViewer, 'organisation' | 'contractors'>,
  filters: PayoutFilters,
  page: PageRequest,
): Promise<Page<Payout>> {
  const { batchId, contractorId } = filters
  if ([batchId, contractorId].some((id) => id !== undefined && !isId(id))) return { items: [], next: undefined }
  const conditions = visibilityOf(viewer)
  const isMatching = matching(filters)
  const { organisation } = viewer
  if (conditions.length === 1 && organisation !== undefined && !isMatching && !page.after) {
    return presentPage(await newestOf(db).execute(organisation, { organisation, rows: rowsToRead(page) }), page)
  }
  // One query for each condition, so that each can follow an index; a payout may be in several.
  const [first = [], ...others] = await Promise.all(
    conditions.map((condition) => {
      const isListed = and(condition, isMatching, afterPosition(payouts, page))
      return rowsOf(db, LISTED, selectListed(db, isListed, rowsToRead(page))).execute(
        organisation ?? viewer.contractors[0],
      )
    }),
  )
  return presentPage(others.length === 0 ? first : merge([first, ...others]).slice(0, rowsToRead(page)), page)
}

const LISTED = { ...PAYOUT_COLUMNS, sequence: payouts.sequence }
type ListedRow = PayoutRow & { sequence: number }

function selectListed(db: Database, isListed: SQL | undefined, rows: number | Placeholder) {
  return db
    .select(LISTED)
    .from(payouts)
    .where(isListed)
    .orderBy(...newestFirst(payouts))
    .limit(rows)
}

/** What frontends ask for most: the first page of an employer's, without a filter. */
const newestOf = preparedOnce((db) => {
  const isOwn = eq(payouts.organisation, sql.placeholder('organisation'))
  return rowsOf(db, LISTED, selectListed(db, isOwn, sql.placeholder('rows')), 'newest_payouts')
})

function merge(lists: readonly ListedRow[][]): ListedRow[] {
  const rows = new Map(lists.flat().map((row) => [row.id, row]))
  return [...rows.values()].sort(
    (one, other) => other.createdAt.getTime() - one.createdAt.getTime() || other.sequence - one.sequence,
  )
}

function presentPage(rows: readonly ListedRow[], page: PageRequest): Page<Payout> {
  const { items, next } = cutPage(rows, page)
  return { items: items.map(presentPayout), next }
}

function visibilityOf({ organisation, contractors }: Pick<PayoutViewer, 'organisation' | 'contractors'>): SQL[] {
  return [
    ...(organisation === undefined ? [] : [eq(payouts.organisation, organisation)]),
    ...(contractors.length === 0 ? [] : [inArray(payouts.contractor, contractors)]),
  ]
}

function matching({ batchId, contractorId, status, from, to }: PayoutFilters): SQL | undefined {
  return and(
    batchId === undefined ? undefined : eq(payouts.batch, batchId),
    contractorId === undefined ? undefined : eq(payouts.contractor, contractorId),
    status === undefined ? undefined : eq(payouts.status, status),
    from === undefined ? undefined : gte(payouts.createdAt, from),
    to === undefined ? undefined : lt(payouts.createdAt, to),
  )
}

/** A payout as its viewers see it: what it does not have is absent. */
export function presentPayout(row: PayoutRow): Payout {
  const { id, batch, contractor, status, createdAt, address, txHash, error, encryptedAmount, paidAt } = row
  return {
    id,
    batchId: batch,
    contractorId: contractor,
    status,
    createdAt: createdAt.toISOString(),
    ...(address !== null && { address }),
    ...(txHash !== null && { txHash }),
    ...(error !== null && { error }),
    encryptedAmount,
    ...(paidAt && { paidAt: paidAt.toISOString() }),
  }
}
