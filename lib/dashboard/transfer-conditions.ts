import { and, asc, eq, inArray, isNotNull, isNull, sql } from 'drizzle-orm'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { type TransferKind, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { type AttentionRow, NAMES_SHOWN, type RecordCondition } from './attention.ts'
import { isLate, WHY_OVERDUE } from './lateness.ts'
import { TRANSFER_PHRASES } from './transfer-rows.ts'

const payeeOf = ({ contractor, transfer }: AttentionRow) =>
  contractor?.name ?? `${transfer?.recipient.slice(0, 4)}…${transfer?.recipient.slice(-4)}`

const isPayment = (kind: TransferKind) => kind === 'transfer' || kind === 'delegated' || kind === 'deposit'

/** A transfer has been open for longer than an envelope can be valid. */
export const transferOverdue: RecordCondition = {
  level: 'late',
  holds: (now) => isLate('transfer', now),
  order: [asc(transfers.createdAt)],
  describe: async (db, _, rows) => {
    const contractorsOf = await findPayees(db, rows)
    return (row) => {
      if (!row.transfer) return undefined
      const { kind, refusalCode } = row.transfer
      const response = refusalCode === null ? '' : `the network’s last response was ${refusalCode}; `
      return {
        what: `${TRANSFER_PHRASES[kind]} ${payeeOf(row)} open`,
        isOngoing: true,
        why: `${response}${WHY_OVERDUE}`,
        remedy: `Look it up now: the service asks the RPC for its outcome${isPayment(kind) ? ', and never pays it twice' : ''}. While it stays open, the RPC lacks that ledger: docs/operate.md, “PayrollTransferOpen”.`,
        actor: 'operator',
        contractors: contractorsOf(row),
      }
    }
  },
}

/** The service does not know whether the payout was paid, so it never pays again. Only the employer can cancel it. */
export const outcomeUnknown: RecordCondition = {
  level: 'bad',
  holds: () =>
    and(
      eq(transfers.status, 'unknown'),
      sql`exists (select from ${payouts} where ${payouts.id} = ${transfers.payout} and ${payouts.status} = 'pending')`,
    ),
  order: [asc(transfers.createdAt)],
  describe: async () => (row) => ({
    since: row.transfer?.createdAt,
    what: `unknown whether ${payeeOf(row)} was paid`,
    why: 'the RPC’s history begins after the transfer, so the payout stays pending',
    asksToPay: true,
    actor: 'operator',
    remedy: 'Ask the employer to check with the contractor whether the payment arrived.',
    request: `Please check with ${payeeOf(row)} whether this payment arrived. The service will not pay it again: cancel the payout, and create a new one only for what did not arrive.`,
  }),
}

/** A payment was found on the ledger, as after a restore from a backup, for a payout that is canceled or paid by another transfer. */
export const foundPaid: RecordCondition = {
  level: 'bad',
  holds: () => and(isNotNull(transfers.foundFor), eq(transfers.status, 'succeeded')),
  order: [asc(transfers.settledAt)],
  describe: async () => (row) => ({
    ...(row.payoutStatus === 'canceled' ? whenCanceled(payeeOf(row)) : whenPaid(payeeOf(row))),
    actor: 'employer',
  }),
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

/** Finds the contractors that transfers pay: those of the payout, or those of any organisation with the recipient's address. */
async function findPayees(db: Database, rows: readonly AttentionRow[]) {
  const addresses = rows.flatMap(({ contractor, transfer }) => (contractor || !transfer ? [] : transfer.recipient))
  const { address, id, name, deletedAt } = contractors
  const found = await db
    .select({ address, id, name })
    .from(contractors)
    .where(and(inArray(address, addresses), isNull(deletedAt)))
    .orderBy(name, id)
  const byAddress = Map.groupBy(found, (payee) => payee.address ?? '')
  return ({ contractor, transfer }: AttentionRow) =>
    contractor ? [contractor] : (byAddress.get(transfer?.recipient ?? '') ?? []).slice(0, NAMES_SHOWN)
}
