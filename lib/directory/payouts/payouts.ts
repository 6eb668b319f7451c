import { and, eq, exists, gte, inArray, lt } from 'drizzle-orm'
import { z } from 'zod'
import { batches, PAYOUT_STATUSES, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { cutPage, type Page, type Position, pageQuery, pageRequest, rowsToRead } from '#lib/db/paging.ts'
import { externalIdShape } from '#lib/text/external-id.ts'
import type { UserContext } from '../context.ts'
import { isId } from '../ids.ts'
import { defineList, externalIdFilter } from '../lists.ts'
import { columnsOf, presentAs } from '../presentation.ts'
import type { User } from '../users.ts'

export const payoutShape = z.object({
  id: z.string(),
  batchId: z.string(),
  contractorId: z.string(),
  status: z.enum(PAYOUT_STATUSES),
  createdAt: z.iso.datetime(),
  address: z.string().optional().meta({ description: 'the contractor’s address when the payout was created' }),
  txHash: z.string().optional().meta({ description: 'hash of the paying transaction, once paid' }),
  error: z.string().optional().meta({
    description: 'why it failed; on a pending payout, that its transfer’s outcome can no longer be determined',
  }),
  encryptedAmount: z.string().optional().meta({
    description: 'returned as it was sent; removed once it is paid or canceled if it was sealed to the relay',
  }),
  paidAt: z.iso.datetime().optional(),
  externalId: externalIdShape,
})
export type Payout = z.output<typeof payoutShape>

export const payoutsShape = z.object({ payouts: z.array(payoutShape) })

/** PostgreSQL and ISO 8601 both write these years with four digits. */
const YEARS = { first: 1, last: 9999 }

/** A time in a query: an ISO 8601 date or date-time. */
export const moment = z
  .union([z.iso.date(), z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })], {
    error: 'must be an ISO 8601 date or date-time',
  })
  .transform((text) => new Date(text))
  .refine((date) => date.getUTCFullYear() >= YEARS.first && date.getUTCFullYear() <= YEARS.last, {
    error: 'must be an ISO 8601 date or date-time',
  })

/** `from` is inclusive, `to` exclusive; both limit `createdAt`. */
export const payoutsQuery = pageQuery.extend({
  batchId: z.string().optional().meta({ description: 'only payouts of this batch' }),
  contractorId: z.string().optional().meta({ description: 'only payouts to this contractor' }),
  status: z
    .enum(PAYOUT_STATUSES, `must be one of ${PAYOUT_STATUSES.join(', ')}`)
    .optional()
    .meta({ description: 'only payouts with this status' }),
  externalId: externalIdFilter,
  from: moment.optional().meta({ description: 'only payouts created at or after this time' }),
  to: moment.optional().meta({ description: 'only payouts created before this time' }),
})

/** The organisations whose payouts a user may see. */
export function organisationsSeenBy({ organisation, records }: User): string[] {
  return [...new Set([...(organisation ? [organisation.id] : []), ...records.map((record) => record.organisation)])]
}

export const PAYOUT_COLUMNS = {
  ...columnsOf(payouts, payoutShape),
  batchId: payouts.batch,
  contractorId: payouts.contractor,
}

export const presentPayout = presentAs(payoutShape)

const LIST = defineList(payouts, { ...PAYOUT_COLUMNS, sequence: payouts.sequence }, (organisation) =>
  eq(payouts.organisation, organisation),
)

/** Lists the payouts that a user makes and receives, newest first. Returns an empty list for an unknown id. */
export async function listPayouts(
  { db, user: { organisation, records } }: UserContext,
  query: z.output<typeof payoutsQuery>,
): Promise<Page<Payout>> {
  const { batchId, contractorId, status, externalId, from, to } = query
  if ([batchId, contractorId].some((id) => id !== undefined && !isId(id))) return { items: [], next: undefined }
  const page = pageRequest(query)
  const contractors = records.map(({ id }) => id)
  const filter = and(
    batchId === undefined ? undefined : eq(payouts.batch, batchId),
    contractorId === undefined ? undefined : eq(payouts.contractor, contractorId),
    status && eq(payouts.status, status),
    externalId === undefined ? undefined : eq(payouts.externalId, externalId),
    from && gte(payouts.createdAt, from),
    to && lt(payouts.createdAt, to),
  )
  const isReceived = inArray(payouts.contractor, contractors)
  const readMade = ({ id }: { id: string }) =>
    batchId === undefined
      ? LIST.readOwn(db, id, filter, page)
      : LIST.readWhere(db, id, and(isBatchOf(db, id, batchId), filter), page)
  // One query for each role, so that each can use an index.
  const lists = await Promise.all([
    organisation ? readMade(organisation) : [],
    contractors[0] ? LIST.readWhere(db, organisation?.id ?? contractors[0], and(isReceived, filter), page) : [],
  ])
  const rows = lists.every(({ length }) => length > 0) ? merge(lists.flat()) : lists.flat()
  const { items, next } = cutPage(rows.slice(0, rowsToRead(page)), page)
  return { items: items.map(presentPayout), next }
}

/**
 * The condition that a batch belongs to an organisation, which is checked once. With the organisation of each payout, the
 * planner would walk the organisation's newest payouts to find an old batch.
 */
function isBatchOf(db: Database, organisation: string, batch: string) {
  const isIt = and(eq(batches.id, batch), eq(batches.organisation, organisation))
  return exists(db.select({ id: batches.id }).from(batches).where(isIt))
}

/** Merges lists, newest first. A payout is in both if the employer is also the contractor. */
function merge<Row extends Position & { id: string }>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()].sort(
    (one, other) => other.createdAt.getTime() - one.createdAt.getTime() || other.sequence - one.sequence,
  )
}
