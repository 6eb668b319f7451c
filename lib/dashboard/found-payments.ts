import { and, asc, eq, isNotNull } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED } from './attention.ts'
import { CONDITIONS } from './conditions.ts'

/**
 * Lists the payments that were found on the ledger, as after a restore from a backup, for payouts that are canceled or that another
 * transfer has paid, oldest first.
 * @param only the transfer, or the batch, to report on alone, acknowledged or not
 */
export async function listFoundPayments(
  db: Database,
  only?: { batch: string } | { transfer: string },
): Promise<Attention[]> {
  const rows = await db
    .select({
      payout: payouts.id,
      status: payouts.status,
      transfer: transfers.id,
      settledAt: transfers.settledAt,
      organisation: { id: organisations.id, name: organisations.name },
      batch: { id: batches.id, name: batches.name },
      contractor: { id: contractors.id, name: contractors.name },
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(transfers)
    .innerJoin(payouts, eq(payouts.id, transfers.foundFor))
    .innerJoin(organisations, eq(organisations.id, payouts.organisation))
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .leftJoin(acknowledgementRows, acknowledges('foundPaid', transfers.id, transfers.settledAt))
    .where(
      and(
        isNotNull(transfers.foundFor),
        eq(transfers.status, 'succeeded'),
        only === undefined
          ? isUnacknowledged
          : 'batch' in only
            ? eq(payouts.batch, only.batch)
            : eq(transfers.id, only.transfer),
      ),
    )
    .orderBy(asc(transfers.settledAt))
    .limit(MAX_LISTED)
  return rows.map(({ payout, status, transfer, settledAt, organisation, batch, contractor, acknowledgement }) => ({
    ...CONDITIONS.foundPaid.notice,
    key: `found paid ${payout} ${transfer}`,
    since: settledAt ?? undefined,
    ...(status === 'canceled' ? whenCanceled(contractor.name) : whenPaid(contractor.name)),
    actor: 'employer',
    organisation,
    batch,
    contractors: [contractor],
    ...(settledAt && {
      acknowledgeable: { condition: 'foundPaid' as const, subject: transfer, lastEvent: settledAt },
    }),
    acknowledgement,
    page: `/transfers/${transfer}`,
  }))
}

const whenCanceled = (payee: string) => ({
  what: `${payee} was paid, although the payout is canceled`,
  why: 'the relay paid it before the database was restored, and found the payment on the ledger afterwards',
  remedy: 'Tell the employer, so that the payout is not paid again.',
  request: `The ledger shows that ${payee} was paid, although this payout is canceled. Please do not pay it again.`,
})

const whenPaid = (payee: string) => ({
  what: `${payee} was paid twice`,
  why: 'the relay found a second payment for the payout on the ledger, from before the database was restored',
  remedy: 'Tell the employer, who can ask the payee to return one of the two payments.',
  request: `The ledger shows two payments to ${payee} for the same payout. Please ask for one of them back, or count it towards the next.`,
})
