/** Offset and length in a ledger's body, bytes. */
export type Span = readonly [offset: number, length: number]

/** The part of a transaction in memory; the rest is read from the ledger's body. */
export interface TransactionRecord {
  /** hex */
  readonly hash: string
  /** hex hash of the transaction inside a fee bump */
  readonly innerHash?: string
  readonly ok: boolean
  readonly isSoroban: boolean
  /** inclusion fee in stroops per operation, decimal */
  readonly inclusionFee: string
  /** a JSON `TransactionBody` */
  readonly at: Span
}

/** One phase of a ledger: its base fee in stroops, and for each stage the number of transactions in each thread. */
export interface PhaseRecord {
  readonly baseFee: string
  readonly stages: readonly (readonly number[])[]
}

/** A transaction as the RPC returns it: base64 XDR. */
export interface TransactionBody {
  readonly envelopeXdr: string
  readonly resultXdr: string
  readonly resultMetaXdr: string
  readonly diagnosticEventsXdr?: string[]
  /** the changes made by the fee charge, and by the refund */
  readonly feeChangesXdr: string[]
  readonly refundChangesXdr: string[]
  readonly events: { readonly transactionEventsXdr?: string[]; readonly contractEventsXdr?: string[][] }
}

/** One event as getEvents returns it. */
export interface EventRecord {
  readonly type: string
  readonly ledger: number
  readonly ledgerClosedAt: string
  readonly contractId: string
  readonly id: string
  readonly operationIndex: number
  readonly transactionIndex: number
  readonly txHash: string
  readonly inSuccessfulContractCall: boolean
  readonly topic: string[]
  readonly value: string
}

/** The part of a closed ledger in memory. */
export interface LedgerRecord {
  readonly sequence: number
  /** unix seconds */
  readonly closeTime: number
  /** hex */
  readonly hash: string
  /** base64 XDR of the LedgerHeader */
  readonly header: string
  /** bytes of all contract data and code */
  readonly sorobanBytes: number
  /** classic, Soroban */
  readonly phases: readonly [PhaseRecord, PhaseRecord]
  readonly transactions: readonly TransactionRecord[]
  /** a JSON array of `EventRecord`, and their contracts */
  readonly events?: { readonly at: Span; readonly contracts: readonly string[] }
}
