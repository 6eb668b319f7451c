import type { xdr } from '@stellar/stellar-sdk'

/** Indexes into the thresholds of an account: master weight, low, medium, high. */
export const LOW = 1
const MEDIUM = 2
const HIGH = 3

export function thresholdOf(account: xdr.AccountEntry, level: number): number {
  return account.thresholds.value[level] ?? 0
}

/** The level at which the source of a supported operation must sign (core's OperationFrame::getThresholdLevel). */
export function levelOf(body: xdr.OperationBody): number {
  switch (body.type) {
    case 'setOptions':
      return changesControl(body.setOptionsOp) ? HIGH : MEDIUM
    case 'bumpSequence':
      return LOW
    default:
      return MEDIUM
  }
}

function changesControl(op: xdr.SetOptionsOp): boolean {
  const { masterWeight, lowThreshold, medThreshold, highThreshold, signer } = op
  return [masterWeight, lowThreshold, medThreshold, highThreshold, signer].some((change) => change !== null)
}
