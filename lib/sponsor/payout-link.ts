import { eq } from 'drizzle-orm'
import { sponsoredTransfers, type SponsoredTransfer as TransferRecord } from '#drizzle/schema/transfers.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { claimPayout, reclaimPayout } from '#lib/directory/payouts/claims.ts'
import { type PayoutOutcome, settlePayout } from '#lib/directory/payouts/settlement.ts'
import { sponsorRefused } from './refusal-reason.ts'

const SERVICE: Actor = { kind: 'service', sub: 'settlement' }

/**
 * Finds the payout that a transfer pays, which is `pending` from here on, and notes it in the transfer's row. Without
 * one the transfer is sponsored all the same. Runs in the SQL transaction that has just written the row.
 * @param payoutId the payout that the client names, if it does
 * @throws SponsorRefusal when that does not fit
 */
export async function claimFor(tx: Database, record: TransferRecord, payoutId?: string): Promise<TransferRecord> {
  const { organisation, innerHash, account, recipient, createdAt } = record
  const claim = organisation === null ? undefined : { transfer: innerHash, organisation, recipient, payoutId }
  const payout = claim && (await claimPayout(tx, claim, createdAt))
  if (payoutId !== undefined && !payout) throw sponsorRefused('payout')
  await recordAudit(tx, createdAt, {
    organisation: organisation ?? undefined,
    actor: { kind: 'ledger', sub: account },
    action: 'transfer.sponsored',
    subject: { kind: 'transfer', id: innerHash },
    ...(payout && { detail: { payout } }),
  })
  if (!payout) return record
  await tx.update(sponsoredTransfers).set({ payout }).where(eq(sponsoredTransfers.innerHash, innerHash))
  return { ...record, payout }
}

/** Gives the payout of a settled transfer its outcome. Runs in the SQL transaction that settles the transfer. */
export async function settleFor(tx: Database, settled: TransferRecord, now: Date): Promise<void> {
  await recordAudit(tx, now, {
    organisation: settled.organisation ?? undefined,
    actor: SERVICE,
    action: 'transfer.settled',
    subject: { kind: 'transfer', id: settled.innerHash },
    detail: { status: settled.status },
  })
  await settle(tx, settled, outcomeOf(settled), now)
}

/** The network will not have the transfer: its payout has failed, though the transfer may yet turn up. */
export async function failFor(tx: Database, open: TransferRecord, now: Date): Promise<void> {
  await settle(tx, open, { status: 'failed', error: `the network refused the transfer: ${open.resultCode}` }, now)
}

/** What the network has refused is sent once more: its payout is on its way again. */
export async function resumeFor(tx: Database, open: TransferRecord, now: Date): Promise<void> {
  if (open.payout) await reclaimPayout(tx, open.payout, open.innerHash, now)
}

async function settle(
  tx: Database,
  { payout, innerHash }: TransferRecord,
  outcome: PayoutOutcome,
  now: Date,
): Promise<void> {
  if (payout) await settlePayout(tx, { payout, transfer: innerHash }, outcome, now)
}

function outcomeOf({ status, ledgerHash, resultCode, contractError }: TransferRecord): PayoutOutcome {
  if (status === 'success' && ledgerHash) return { status: 'paid', txHash: ledgerHash }
  if (status === 'dead') return { status: 'failed', error: 'the transfer expired before it reached the ledger' }
  const contract = contractError === null ? '' : `, contract error ${contractError}`
  return { status: 'failed', error: `the transfer failed on the ledger: ${resultCode}${contract}` }
}
