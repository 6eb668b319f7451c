import { and, count, desc, eq, gt, inArray, lte, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED, NAMES_SHOWN } from './attention.ts'
import { askTo, describeCauses, type FailedFor, stepAfter } from './causes.ts'
import { CONDITIONS } from './conditions.ts'
import { adviseOn, explainPayout } from './explanation.ts'
import { outcomeOf, paysPayout, transferRows } from './transfer-rows.ts'

/** The batches beyond the listed ones are counted up to this number. */
const MAX_COUNTED = 1_000
/** The number of a batch's latest failures whose reasons are read. */
const MAX_EXPLAINED = 200

/**
 * Lists at most 20 batches with failed payouts, and counts the others. A batch that was acknowledged is listed again
 * once another payout fails.
 * @param only the id of a batch to list alone, acknowledged or not
 */
export async function listFailedBatches(db: Database, only?: string): Promise<{ items: Attention[]; others: number }> {
  const isAcknowledged = acknowledges('payoutsFailed', batches.id, batches.failedAt)
  const unacknowledged = db
    .select({ id: batches.id })
    .from(batches)
    .leftJoin(acknowledgementRows, isAcknowledged)
    .where(and(gt(batches.failedCount, 0), isUnacknowledged))
    .orderBy(desc(batches.failedAt), batches.id)
    .$dynamic()
  const ids = only ? [only] : (await unacknowledged.limit(MAX_LISTED)).map(({ id }) => id)
  const failures = failuresOf(db, ids)
  const [rows, [all]] = await Promise.all([
    db
      .select({
        id: batches.id,
        name: batches.name,
        organisation: organisations.id,
        organisationName: organisations.name,
        payoutCount: batches.payoutCount,
        failedCount: batches.failedCount,
        contractor: contractors.id,
        contractorName: contractors.name,
        error: payouts.error,
        first: failures.first,
        last: batches.failedAt,
        mayBePaid: failures.mayBePaid,
        outcome: outcomeOf,
        acknowledgement: ACKNOWLEDGEMENT,
      })
      .from(failures)
      .innerJoin(payouts, eq(payouts.id, failures.payout))
      .innerJoin(batches, eq(batches.id, payouts.batch))
      .innerJoin(organisations, eq(organisations.id, batches.organisation))
      .innerJoin(contractors, eq(contractors.id, payouts.contractor))
      .leftJoin(transferRows, paysPayout)
      .leftJoin(acknowledgementRows, isAcknowledged)
      .where(lte(failures.place, MAX_EXPLAINED))
      .orderBy(desc(batches.failedAt), batches.id, failures.place),
    ids.length < MAX_LISTED
      ? []
      : db.select({ count: count() }).from(unacknowledged.limit(MAX_COUNTED).as('unacknowledged')),
  ])
  const byBatch = [...Map.groupBy(rows, ({ id }) => id).values()]
  const items = byBatch.flatMap((failed): Attention[] => {
    const [newest] = failed
    if (!newest) return []
    const payoutsAgain = newest.failedCount === 1 ? 'the failed payout' : `the ${newest.failedCount} failed payouts`
    const causes = failed.map(
      (failure): FailedFor => ({
        count: 1,
        meaning: explainPayout(failure) || (failure.error ?? ''),
        advice: adviseOn(failure),
      }),
    )
    const sample = newest.failedCount > failed.length ? `of the last ${failed.length}` : undefined
    return [
      {
        ...CONDITIONS.payoutsFailed.notice,
        key: `failed ${newest.id}`,
        since: newest.first,
        what: `${newest.failedCount} of ${counted(newest.payoutCount, 'payout', 'payouts')} failed`,
        why: `${sample ? `${sample}: ` : ''}${describeCauses(causes)}`,
        ...(newest.mayBePaid
          ? checkFirst(newest.failedCount)
          : stepAfter(causes, `send ${payoutsAgain} again`, { sample })),
        organisation: { id: newest.organisation, name: newest.organisationName },
        batch: { id: newest.id, name: newest.name },
        contractors: failed
          .slice(0, NAMES_SHOWN)
          .map((failure) => ({ id: failure.contractor, name: failure.contractorName })),
        moreContractors: Math.max(0, newest.failedCount - NAMES_SHOWN),
        ...(newest.last && {
          acknowledgeable: { condition: 'payoutsFailed', subject: newest.id, lastEvent: newest.last },
        }),
        acknowledgement: newest.acknowledgement,
        page: `/batches/${newest.id}?status=failed`,
      },
    ]
  })
  return { items, others: Math.max(0, (all?.count ?? 0) - items.length) }
}

/** The next step if one of the payouts may have been paid after all. */
const checkFirst = (failedCount: number) =>
  askTo(
    failedCount === 1
      ? 'check with the contractor whether the payment arrived; cancel the payout if it did, and send it again if it did not'
      : 'check with the contractors which payments arrived; cancel the payouts of those, and send only the others again',
  )

/**
 * Selects the failed payouts of batches with their rank in the batch, newest first, the batch's first failure, and whether
 * one of the batch may have been paid by a transaction that the service doesn't know.
 */
function failuresOf(db: Database, ids: readonly string[]) {
  const { id, batch, status, createdAt, sequence } = payouts
  const failedAt = sql`coalesce(${transferRows.settledAt}, ${createdAt})`
  const rank = sql`row_number() over (partition by ${batch} order by ${failedAt} desc, ${sequence})`
  const mayBePaid = sql<boolean>`bool_or(coalesce(${transferRows.status} = 'expired' and ${transferRows.resultCode} is not null, false))
    over (partition by ${batch})`
  return db
    .select({
      payout: id,
      batch,
      mayBePaid: mayBePaid.as('may_be_paid'),
      first: sql`min(${failedAt}) over (partition by ${batch})`.mapWith(createdAt).as('first'),
      place: rank.mapWith(Number).as('place'),
    })
    .from(payouts)
    .leftJoin(transferRows, paysPayout)
    .where(and(inArray(batch, [...ids]), eq(status, 'failed')))
    .as('failures')
}

const counted = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`
