import { and, eq, gte, inArray, lt } from 'drizzle-orm'
import { z } from 'zod'
import { PAYOUT_STATUSES, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { cutPage, type Page, type Position, pageQuery, pageRequest, rowsToRead } from '#lib/db/paging.ts'
import { isId } from '../ids.ts'
import { openList } from '../lists.ts'

export const payoutShape = z.object({
  id: z.string(),
  batchId: z.string(),
  contractorId: z.string(),
  status: z.enum(PAYOUT_STATUSES),
  createdAt: z.iso.datetime(),
  address: z.string().optional().meta({ description: 'the contractor’s address when it was instructed' }),
  txHash: z.string().optional().meta({ description: 'hash of the transaction that pays it, once paid' }),
  error: z
    .string()
    .optional()
    .meta({ description: 'why it failed, or, of one that is pending, that nothing can be learned of its transfer' }),
  encryptedAmount: z.string().optional().meta({ description: 'as it came: opaque to the service' }),
  paidAt: z.iso.datetime().optional(),
})
export type Payout = z.output<typeof payoutShape>

export const payoutsShape = z.object({ payouts: z.array(payoutShape) })

/** The years that both PostgreSQL and ISO 8601 write with four digits. */
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

/** `from` is inclusive, `to` exclusive; both limit `createdAt`. */
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

/** The reader of payouts: as the employer of an organisation, and as the payee of contractor records. */
interface Viewer {
  organisation: { id: string } | undefined
  records: readonly { id: string; organisation: string }[]
}

/** All organisations whose payouts a user may see. */
export function organisationsSeenBy({ organisation, records }: Viewer): string[] {
  return [...new Set([...(organisation ? [organisation.id] : []), ...records.map((record) => record.organisation)])]
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

const LIST = openList(payouts, { ...PAYOUT_COLUMNS, sequence: payouts.sequence }, (organisation) =>
  eq(payouts.organisation, organisation),
)

/** The payouts that a user makes and those made out to it, newest first. An unknown id gives an empty list. */
export async function listPayouts(
  { db, user: { organisation, records } }: { db: Database; user: Viewer },
  query: z.output<typeof payoutsQuery>,
): Promise<Page<Payout>> {
  const { batchId, contractorId, status, from, to } = query
  if ([batchId, contractorId].some((id) => id !== undefined && !isId(id))) return { items: [], next: undefined }
  const page = pageRequest(query)
  const contractors = records.map(({ id }) => id)
  const filter = and(
    batchId === undefined ? undefined : eq(payouts.batch, batchId),
    contractorId === undefined ? undefined : eq(payouts.contractor, contractorId),
    status && eq(payouts.status, status),
    from && gte(payouts.createdAt, from),
    to && lt(payouts.createdAt, to),
  )
  const isTheirs = inArray(payouts.contractor, contractors)
  // The organisation's payouts and the records' payouts are two queries, so that each can use an index.
  const lists = await Promise.all([
    organisation ? LIST.readOwn(db, organisation.id, filter, page) : [],
    contractors[0] ? LIST.readMatching(db, organisation?.id ?? contractors[0], and(isTheirs, filter), page) : [],
  ])
  const rows = lists.every(({ length }) => length > 0) ? merge(lists.flat()) : lists.flat()
  const { items, next } = cutPage(rows.slice(0, rowsToRead(page)), page)
  return { items: items.map(presentPayout), next }
}

/** Merges lists, newest first. A payout may be in both, if the employer is also the contractor. */
function merge<Row extends Position & { id: string }>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()].sort(
    (one, other) => other.createdAt.getTime() - one.createdAt.getTime() || other.sequence - one.sequence,
  )
}

/** A payout as its viewers see it. Fields without a value are left out. */
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
