import type { xdr } from '@stellar/stellar-sdk'
import { isTemporary } from '../state/entry.ts'
import type { Change, StoredEntry } from '../state/state.ts'

/** Network limits per transaction (core's testnet settings for protocol 28). Sizes in bytes, lifetimes in ledgers. */
export const NETWORK_LIMITS = {
  instructions: 400_000_000,
  memoryBytes: 41_943_040,
  footprintEntries: 400,
  diskReadEntries: 200,
  diskReadBytes: 200_000,
  writeEntries: 200,
  writeBytes: 132_096,
  transactionBytes: 132_096,
  eventBytes: 16_384,
  codeBytes: 131_072,
  keyBytes: 250,
  entryBytes: 65_536,
  persistentTtl: 120_960,
  temporaryTtl: 720,
  maximumTtl: 3_110_400,
} as const

/** Fee rates in stroops (core's testnet settings for protocol 28). */
export const FEE_RATES = {
  per10kInstructions: 7n,
  diskReadEntry: 1_563n,
  writeEntry: 2_500n,
  diskRead1Kb: 447n,
  write1Kb: 875n,
  historical1Kb: 4_059n,
  events1Kb: 5_000n,
  transaction1Kb: 406n,
  rent1Kb: 1_000n,
  persistentRentDenominator: 1_215n,
  temporaryRentDenominator: 2_430n,
} as const

/** The bytes that a transaction's result adds to its size in the history archives. */
const RESULT_BYTES = 300
/** A TtlEntry as the ledger counts it. */
const TTL_ENTRY_BYTES = 48n

const divideUp = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor
const perKilobyte = (bytes: number, rate: bigint): bigint => divideUp(BigInt(bytes) * rate, 1024n)
const isClassic = (key: xdr.LedgerKey): boolean => key.type !== 'contractData' && key.type !== 'contractCode'

/**
 * The price of the declared resources, used or not (core's compute_transaction_resource_fee), in stroops.
 * `envelopeBytes` is the size of the inner envelope; a fee bump's wrapper is not charged.
 */
export function nonRefundableFee(resources: xdr.SorobanResources, envelopeBytes: number): bigint {
  const { readOnly, readWrite } = resources.footprint
  const diskReads = readOnly.filter(isClassic).length + readWrite.filter(isClassic).length
  return (
    divideUp(BigInt(resources.instructions) * FEE_RATES.per10kInstructions, 10_000n) +
    BigInt(diskReads) * FEE_RATES.diskReadEntry +
    BigInt(readWrite.length) * FEE_RATES.writeEntry +
    perKilobyte(resources.diskReadBytes, FEE_RATES.diskRead1Kb) +
    perKilobyte(resources.writeBytes, FEE_RATES.write1Kb) +
    perKilobyte(envelopeBytes + RESULT_BYTES, FEE_RATES.historical1Kb) +
    perKilobyte(envelopeBytes, FEE_RATES.transaction1Kb)
  )
}

/** The fee for the contract events and the return value of a call, in stroops; `bytes` is the size of their XDR. */
export function eventsFee(bytes: number): bigint {
  return perKilobyte(bytes, FEE_RATES.events1Kb)
}

/**
 * Rent in stroops for the entries that a transaction extended or enlarged, in the ledger `ledgerSequence`
 * (core's compute_rent_fee): an extension is charged on the new size, growth on the ledgers already paid for.
 */
export function rentFee(changes: Change[], ledgerSequence: number): bigint {
  let fee = 0n
  let extended = 0n
  for (const { before, after } of changes) {
    if (after?.liveUntil === undefined) continue
    // An expired entry that is rewritten counts as new.
    const paidUntil = Math.max(before?.liveUntil ?? 0, ledgerSequence - 1)
    const ledgers = after.liveUntil - paidUntil
    const paidLedgers = paidUntil - ledgerSequence + 1
    if (ledgers > 0) {
      fee += rent(after, entryBytes(after), ledgers)
      extended += 1n
    }
    if (before && before.data !== after.data) {
      const growth = entryBytes(after) - entryBytes(before)
      if (growth > 0) fee += rent(after, growth, paidLedgers)
    }
  }
  return fee + extended * FEE_RATES.writeEntry + divideUp(TTL_ENTRY_BYTES * extended * FEE_RATES.write1Kb, 1024n)
}

function rent(entry: StoredEntry, bytes: number, ledgers: number): bigint {
  const denominator = isTemporary(entry) ? FEE_RATES.temporaryRentDenominator : FEE_RATES.persistentRentDenominator
  return divideUp(BigInt(bytes) * FEE_RATES.rent1Kb * BigInt(ledgers), 1024n * denominator)
}

const sizes = new WeakMap<xdr.LedgerEntryData, number>()

/** Size in bytes of the entry as a LedgerEntry: its data, lastModifiedLedgerSeq and an empty ext. */
export function entryBytes({ data }: Pick<StoredEntry, 'data'>): number {
  const cached = sizes.get(data)
  if (cached !== undefined) return cached
  const size = data.toXdr().length + 8
  sizes.set(data, size)
  return size
}
