import { explainTransfer } from '#lib/dashboard/explanation.ts'
import { transferState, WHY_OVERDUE } from '#lib/dashboard/lateness.ts'
import type { Filters } from '#lib/dashboard/list.ts'
import { TRANSFER_VIEWS, type TransferView } from '#lib/dashboard/transfer-rows.ts'
import { readTransfers, type TransferLine, type TransferRequest } from '#lib/dashboard/transfers.ts'
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

const isView = (view: string): view is TransferView => Object.hasOwn(TRANSFER_VIEWS, view)

export const TRANSFER_LIST: ListFile<Filters<TransferRequest>, TransferLine> = {
  name: 'transfers',
  filters: ({ q = '', organisation = '', contractor = '', view = '' }, { settings }) => ({
    q,
    organisation,
    contractor,
    view: isView(view) ? view : '',
    faucet: settings.faucet?.keypair.publicKey(),
  }),
  read: (db, filters) => readTransfers(db, filters),
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
