import { and, asc, eq, isNotNull } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED } from './attention.ts'
import { CONDITIONS } from './conditions.ts'

/**
 * Lists the canceled payouts that the ledger has paid, as it turned out after a restore from a backup, oldest first.
 * @param only the transfer, or the batch, to report on alone, acknowledged or not
 */
export async function listPaidAlthoughCanceled(
  db: Database,
  only?: { batch: string } | { transfer: string },
): Promise<Attention[]> {
  const rows = await db
    .select({
      payout: payouts.id,
      transfer: transfers.id,
      settledAt: transfers.settledAt,
      organisation: { id: organisations.id, name: organisations.name },
      batch: { id: batches.id, name: batches.name },
      contractor: { id: contractors.id, name: contractors.name },
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(payouts)
    .innerJoin(transfers, and(eq(transfers.id, payouts.transfer), eq(transfers.status, 'succeeded')))
    .innerJoin(organisations, eq(organisations.id, payouts.organisation))
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .leftJoin(acknowledgementRows, acknowledges('paidAlthoughCanceled', transfers.id, transfers.settledAt))
    .where(
      and(
        eq(payouts.status, 'canceled'),
        isNotNull(payouts.txHash),
        only === undefined
          ? isUnacknowledged
          : 'batch' in only
            ? eq(payouts.batch, only.batch)
            : eq(transfers.id, only.transfer),
      ),
    )
    .orderBy(asc(transfers.settledAt))
    .limit(MAX_LISTED)
  return rows.map(({ payout, transfer, settledAt, organisation, batch, contractor, acknowledgement }) => ({
    ...CONDITIONS.paidAlthoughCanceled.notice,
    key: `paid although canceled ${payout}`,
    since: settledAt ?? undefined,
    what: `${contractor.name} was paid, although the payout is canceled`,
    why: 'the relay paid it before the database was restored, and found the payment on the ledger afterwards',
    remedy: 'Tell the employer, so that the payout is not paid again.',
    request: `The ledger shows that ${contractor.name} was paid, although this payout is canceled. Please do not pay it again.`,
    actor: 'employer',
    organisation,
    batch,
    contractors: [contractor],
    ...(settledAt && {
      acknowledgeable: { condition: 'paidAlthoughCanceled' as const, subject: transfer, lastEvent: settledAt },
    }),
    acknowledgement,
    page: `/transfers/${transfer}`,
  }))
}
