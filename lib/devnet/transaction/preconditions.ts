import type { xdr } from '@stellar/stellar-sdk'
import { sequenceUse, startingSequence } from '../state/account.ts'
import type { Inner } from './envelope.ts'

/** The ledger for which a transaction is checked. */
export interface Moment {
  /** sequence of the ledger that would include it */
  readonly sequence: number
  /** unix seconds: that ledger's close time when applying, otherwise the last closed ledger's */
  readonly closeTime: number
  /** seconds by which the close may be later; 0 when applying */
  readonly latest: number
}

export function preconditionsOf({ tx }: Inner): xdr.PreconditionsV2 | undefined {
  return tx.cond.type === 'precondV2' ? tx.cond.v2 : undefined
}

function timeBoundsOf({ tx }: Inner): xdr.TimeBounds | null {
  if (tx.cond.type === 'precondTime') return tx.cond.timeBounds
  return tx.cond.type === 'precondV2' ? tx.cond.v2.timeBounds : null
}

export function isTooEarly(inner: Inner, moment: Moment): boolean {
  const minTime = timeBoundsOf(inner)?.minTime ?? 0n
  const minLedger = preconditionsOf(inner)?.ledgerBounds?.minLedger ?? 0
  return minTime > BigInt(moment.closeTime) || minLedger > moment.sequence
}

/** A maxLedger is exclusive, a maxTime inclusive. */
export function isTooLate(inner: Inner, moment: Moment): boolean {
  const maxTime = timeBoundsOf(inner)?.maxTime ?? 0n
  const maxLedger = preconditionsOf(inner)?.ledgerBounds?.maxLedger ?? 0
  const late = maxTime !== 0n && maxTime < BigInt(moment.closeTime + moment.latest)
  return late || (maxLedger !== 0 && maxLedger <= moment.sequence)
}

export function isBadSequence(inner: Inner, account: xdr.AccountEntry, moment: Moment): boolean {
  const wanted = inner.tx.seqNum
  if (wanted === startingSequence(moment.sequence)) return true
  const minSeqNum = preconditionsOf(inner)?.minSeqNum ?? null
  if (minSeqNum === null) return wanted !== account.seqNum + 1n
  return account.seqNum < minSeqNum || account.seqNum >= wanted
}

/** CAP-21: the account's last sequence number must be that many seconds and ledgers old. */
export function isTooSoonForAccount(inner: Inner, account: xdr.AccountEntry, moment: Moment): boolean {
  const conditions = preconditionsOf(inner)
  if (!conditions) return false
  const used = sequenceUse(account)
  const restless = BigInt(moment.closeTime) - conditions.minSeqAge < used.time
  return restless || moment.sequence - conditions.minSeqLedgerGap < used.ledger
}
