import { createHash } from 'node:crypto'
import type { QuotaLimits } from '#lib/sponsor/quota.ts'
import type { RefusalReason } from '#lib/sponsor/refusal-reason.ts'
import type { NewTransfer } from '#lib/sponsor/transfer-record.ts'

export const BID = 181_120n
export const DAY = '2026-05-01'

export const limits: QuotaLimits = {
  transfersPerAccount: 500,
  stroopsPerAccount: 1_000_000_000n,
  dailyBudget: 10_000_000_000n,
}
/** What the ledger would let the sponsor spend, where that is not the question. */
export const PLENTY = 1_000_000_000_000n

/** A transfer of its own for every name. */
export function transferNamed(name: string, given: Partial<NewTransfer> = {}): NewTransfer {
  const digest = (what: string) => createHash('sha256').update(`${what} ${name}`).digest('hex')
  return {
    innerHash: digest('inner'),
    outerHash: digest('outer'),
    account: 'payer',
    recipient: 'payee',
    sponsor: 'sponsor',
    envelope: 'AAAA',
    bid: BID,
    maxTime: 1_777_636_800,
    quotaDay: DAY,
    sinceLedger: 100,
    ...given,
  }
}

/** Limits that let exactly `FITTING` transfers of one bid through, and the reason that the others get. */
export interface QuotaCase {
  name: string
  reason: RefusalReason
  limits: Partial<QuotaLimits>
  available?: bigint
  /** how many accounts pay */
  payers: number
}

export const FITTING = 37
const fits = BigInt(FITTING) * BID

export const QUOTA_CASES: readonly QuotaCase[] = [
  { name: 'transfers', reason: 'quota-transfers', limits: { transfersPerAccount: FITTING }, payers: 1 },
  { name: 'stroops, to the last', reason: 'quota-stroops', limits: { stroopsPerAccount: fits }, payers: 1 },
  { name: 'stroops, but one', reason: 'quota-stroops', limits: { stroopsPerAccount: fits + BID - 1n }, payers: 1 },
  { name: 'the budget, to the last', reason: 'daily-budget', limits: { dailyBudget: fits }, payers: 9 },
  { name: 'the budget, but one', reason: 'daily-budget', limits: { dailyBudget: fits + BID - 1n }, payers: 9 },
  { name: 'the float, to the last', reason: 'float', limits: {}, available: fits, payers: 9 },
  { name: 'the float, but one', reason: 'float', limits: {}, available: fits + BID - 1n, payers: 9 },
]
