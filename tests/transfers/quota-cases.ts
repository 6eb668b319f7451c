import { createHash } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import type { TransferKind } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'
import type { Decision, LedgerRecord } from '#lib/transfers/decide.ts'
import { decodeInner, readIntent } from '#lib/transfers/policy.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'
import { recordTransfer } from '#lib/transfers/record.ts'
import { findTransferOfHash, setOf, type Transfer } from '#lib/transfers/rows.ts'
import { settle } from '#lib/transfers/settle.ts'
import { PASSPHRASE, rules, signedTransfer } from '../support/inner-transaction.ts'

export const BID = 181_120n
export const DAY = '2026-05-01'

export const limits: QuotaLimits = {
  transfersPerAccount: 500,
  stroopsPerAccount: 1_000_000_000n,
  dailyBudget: 10_000_000_000n,
  callsBudget: 10_000_000_000n,
}
/** A balance of the sponsor for the cases in which it is not the limit. */
export const PLENTY = 1_000_000_000_000n

const digest = (what: string) => createHash('sha256').update(what).digest('hex')
const inner = decodeInner(signedTransfer(), PASSPHRASE)
const intent = readIntent(inner, rules)

/** A transfer to record: by default each name has its own transaction and its own account. */
export interface NamedTransfer {
  kind: TransferKind
  innerHash: string
  outerHash: string
  account: string
  sequenceNumber: bigint
  recipient: string
  sponsor: string
  /** undefined: the account's own */
  quotaAccount: string | undefined
  bid: bigint
  maxTime: number
  createdAt: Date
  recordedLedger: number
}

/** A valid address, the same for the same name. */
export const addressNamed = (name: string): string =>
  Keypair.fromRawEd25519Seed(Buffer.from(digest(name), 'hex')).publicKey()

export function transferNamed(name: string, given: Partial<NamedTransfer> = {}): NamedTransfer {
  return {
    kind: 'transfer',
    innerHash: digest(`inner ${name}`),
    outerHash: digest(`outer ${name}`),
    account: addressNamed(name),
    sequenceNumber: 8n,
    recipient: 'payee',
    sponsor: 'sponsor',
    quotaAccount: 'payer',
    bid: BID,
    maxTime: 1_777_636_800,
    createdAt: new Date(`${DAY}T12:00:00Z`),
    recordedLedger: 100,
    ...given,
  }
}

/** Records it as the sponsor does. */
export function recordNamed(
  db: Database,
  named: NamedTransfer,
  given: QuotaLimits,
  available: bigint,
  { payoutId }: { payoutId?: string | undefined } = {},
) {
  const { kind, innerHash, outerHash, account, recipient, sequenceNumber, maxTime, bid, quotaAccount } = named
  const proposal = {
    inner: { ...inner, hashHex: innerHash, source: account },
    intent: {
      ...intent,
      kind,
      account,
      owner: kind === 'delegated' ? account : null,
      to: recipient,
      sequenceNumber,
      maxTime: BigInt(maxTime),
    },
    terms: { ...(payoutId !== undefined && { payoutId }), ...(quotaAccount !== undefined && { quotaAccount }) },
    now: named.createdAt,
  }
  const bump = { envelope: 'AAAA', hash: outerHash, bid }
  const { sponsor, recordedLedger } = named
  return recordTransfer(db, proposal, { bump, sponsor, recordedLedger, limits: given, available })
}

/** The decision that follows from a record of the ledger; without a record the transfer has expired. */
export function decisionOf(record: LedgerRecord | null): Decision {
  if (!record) return { status: 'expired' }
  return { status: record.succeeded ? 'succeeded' : 'failed', record, feeCharged: record.feeCharged }
}

/** Settles the transfer of an inner hash, as the engine does. */
export async function settleNamed(
  db: Database,
  innerHash: string,
  decision: Decision | LedgerRecord | null,
  now: Date,
): Promise<Transfer> {
  const found = await findTransferOfHash(db, innerHash)
  if (!found) throw new Error('there is no such transfer')
  const { transfer, envelopes } = found
  const made = decision && 'status' in decision ? decision : decisionOf(decision && { ...decision, applied: innerHash })
  const settled = await settle(db, transfer.id, { decision: made, lookedUp: setOf(envelopes), now })
  return settled ?? (await settleNamed(db, innerHash, decision, now))
}

/** Limits that let exactly `FITTING` transfers of one bid through, and the reason that the others get. */
interface QuotaCase {
  name: string
  reason: RefusalReason
  limits: Partial<QuotaLimits>
  available?: bigint
  /** how many accounts pay */
  payers: number
  kind?: TransferKind
}

export const FITTING = 37
const fits = BigInt(FITTING) * BID

export const QUOTA_CASES: readonly QuotaCase[] = [
  { name: 'transfers', reason: 'quota-transfers', limits: { transfersPerAccount: FITTING }, payers: 1 },
  { name: 'stroops, to the last', reason: 'quota-stroops', limits: { stroopsPerAccount: fits }, payers: 1 },
  { name: 'stroops, but one', reason: 'quota-stroops', limits: { stroopsPerAccount: fits + BID - 1n }, payers: 1 },
  { name: 'the budget, to the last', reason: 'daily-budget', limits: { dailyBudget: fits }, payers: 9 },
  { name: 'the budget, but one', reason: 'daily-budget', limits: { dailyBudget: fits + BID - 1n }, payers: 9 },
  { name: 'the calls, to the last', reason: 'daily-budget', limits: { callsBudget: fits }, payers: 9, kind: 'merge' },
  {
    name: 'the calls, but one',
    reason: 'daily-budget',
    limits: { callsBudget: fits + BID - 1n },
    payers: 9,
    kind: 'register',
  },
  { name: 'the float, to the last', reason: 'float', limits: {}, available: fits, payers: 9 },
  { name: 'the float, but one', reason: 'float', limits: {}, available: fits + BID - 1n, payers: 9 },
]
