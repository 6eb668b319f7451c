import { explainTransfer } from '#lib/dashboard/explanation.ts'
import type { Filters } from '#lib/dashboard/filters.ts'
import { transferState, WHY_OVERDUE } from '#lib/dashboard/lateness.ts'
import { TRANSFER_FILTERS, type TransferFilters } from '#lib/dashboard/transfer-filters.ts'
import { readTransfers, type TransferLine } from '#lib/dashboard/transfers.ts'
import type { Service } from '#lib/server/services.ts'
import { formatUnits } from '#lib/text/money.ts'
import type { ListFile } from '../csv-file.ts'
import { statusWord } from '../status.tsx'

/** Why the transfer did not succeed; empty if it did. */
export function whyNotSucceeded(transfer: TransferLine, now: Date): string {
  return transferState(transfer, now) === 'overdue' ? WHY_OVERDUE : explainTransfer(transfer)
}

export const KIND_WORDS: Record<TransferLine['kind'], string> = {
  transfer: 'Confidential transfer',
  delegated: 'Delegated transfer',
  register: 'Registration',
  merge: 'Merge',
  set_spender: 'Delegation',
  revoke_spender: 'Revocation',
  deposit: 'Deposit of the faucet',
}

/** Transfers without the faucet's deposits and the channels' own calls, unless an account is the filter. */
export const withoutFaucet = (
  filters: Filters<typeof TRANSFER_FILTERS>,
  { settings }: Pick<Service, 'settings'>,
): TransferFilters => ({ ...filters, faucet: settings.faucet?.keypair.publicKey() })

export const TRANSFER_LIST: ListFile<typeof TRANSFER_FILTERS, TransferLine> = {
  name: 'transfers',
  checks: TRANSFER_FILTERS,
  read: (db, filters, service) => readTransfers(db, withoutFaucet(filters, service)),
  columns: [
    ['Accepted (UTC)', ({ createdAt }) => createdAt],
    ['Organisation', ({ organisationName }) => organisationName],
    ['From', ({ account }) => account],
    ['To', ({ recipient }) => recipient],
    ['Relay, for', ({ quotaAccount }) => quotaAccount],
    ['Pays', ({ contractorName }) => contractorName],
    ['Batch', ({ batchName }) => batchName],
    ['Result', (transfer, now) => statusWord('transfer', transferState(transfer, now))],
    ['Why', whyNotSucceeded],
    ['Settled (UTC)', ({ settledAt }) => settledAt],
    ['Charged, XLM', ({ feeCharged }) => (feeCharged === null ? null : formatUnits(feeCharged))],
    ['Bid, XLM', ({ bid }) => formatUnits(bid)],
    ['Transaction', ({ ledgerHash }) => ledgerHash],
    ['Outer hash', ({ outerHash }) => outerHash],
    ['Inner hash', ({ innerHash }) => innerHash],
    ['Relay job', ({ job }) => job],
  ],
}
