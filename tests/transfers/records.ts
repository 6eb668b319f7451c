import type { LedgerRecord } from '#lib/transfers/decide.ts'

/** The possible results of a transfer in the ledger. */
export const SUCCESS: LedgerRecord = {
  succeeded: true,
  consumed: true,
  applied: '11'.repeat(32),
  closedAt: 1_777_636_700,
  hash: '22'.repeat(32),
  outerHash: '22'.repeat(32),
  ledger: 105,
  feeCharged: 64_321n,
  resultCode: 'txSuccess',
  contractError: null,
}
export const FAILURE: LedgerRecord = {
  ...SUCCESS,
  succeeded: false,
  feeCharged: 54_321n,
  resultCode: 'txFailed',
  contractError: 3506,
}
/** The client submitted the transaction directly: the sponsor pays nothing. */
export const OWN: LedgerRecord = { ...SUCCESS, hash: '11'.repeat(32), outerHash: null, feeCharged: 0n }
