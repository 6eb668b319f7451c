import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import { BASE_RESERVE } from '../state/account.ts'
import { BASE_FEE } from '../transaction/validity.ts'

/**
 * The protocols whose numbers and headers the ledger can have; it runs transactions as in protocol 28. stellar-sdk 17 can't decode a
 * header of protocol 30, which adds close times in milliseconds (CAP-88).
 */
const PROTOCOLS = [28, 30] as const
export type Protocol = (typeof PROTOCOLS)[number]

/** total stroops: 100 billion XLM, initially all in the root account */
export const TOTAL_COINS = 100_000_000_000n * 10_000_000n

interface NextHeader {
  readonly previousHash: Uint8Array
  readonly sequence: number
  /** unix seconds */
  readonly closeTime: number
  /** stroops of fees charged so far */
  readonly feePool: bigint
  readonly transactions: xdr.GeneralizedTransactionSet
  /** in order of application */
  readonly results: readonly xdr.TransactionResultPair[]
  /** base64 keys and entries that changed, in place of a bucket list */
  readonly changes: readonly string[]
  readonly protocol: Protocol
}

/** The header of the next ledger, encoded. Its hash covers the ledger's effects and the previous ledger. */
export function makeHeader(next: NextHeader): { header: Uint8Array; hash: Uint8Array } {
  const plain = new xdr.LedgerHeader({
    ledgerVersion: next.protocol,
    previousLedgerHash: next.previousHash,
    scpValue: new xdr.StellarValue({
      txSetHash: sha256(next.transactions.toXdr()),
      closeTime: BigInt(next.closeTime),
      upgrades: [],
      ext: xdr.StellarValueExt.stellarValueBasic(),
    }),
    txSetResultHash: sha256(new xdr.TransactionResultSet({ results: [...next.results] }).toXdr()),
    bucketListHash: sha256(next.previousHash, ...next.changes),
    ledgerSeq: next.sequence,
    totalCoins: TOTAL_COINS,
    feePool: next.feePool,
    inflationSeq: 0,
    idPool: 0n,
    baseFee: Number(BASE_FEE),
    baseReserve: Number(BASE_RESERVE),
    maxTxSetSize: 1000,
    skipList: Array.from({ length: 4 }, () => new Uint8Array(32)),
    ext: xdr.LedgerHeaderExt.v0(),
  })
  const header = next.protocol < 30 ? plain.toXdr() : withMilliseconds(plain.toXdr(), next.closeTime)
  return { header, hash: sha256(header) }
}

/** Where a header has the extension of its StellarValue: after version, previous hash, transaction set, time and no upgrades. */
const EXTENSION = 4 + 32 + 32 + 8 + 4

/** The arm of a signed StellarValue with its close time in milliseconds, and the size of its fields (node, signature, time). */
const SIGNED_WITH_MILLISECONDS = 3
const SIGNED_BYTES = 4 + 32 + 4 + 64 + 8

/** A header with the extension of protocol 30. Node and signature are zeros: this ledger has no validators. */
function withMilliseconds(plain: Uint8Array, closeTime: number): Uint8Array {
  const signed = Buffer.alloc(4 + SIGNED_BYTES)
  signed.writeInt32BE(SIGNED_WITH_MILLISECONDS)
  signed.writeInt32BE(64, 4 + 4 + 32)
  signed.writeBigUInt64BE(BigInt(closeTime) * 1_000n, signed.length - 8)
  return Buffer.concat([plain.subarray(0, EXTENSION), signed, plain.subarray(EXTENSION + 4)])
}

/** Decodes an encoded header, without an extension that stellar-sdk does not know. */
export function readHeader(header: string): xdr.LedgerHeader {
  const bytes = Buffer.from(header, 'base64')
  if (bytes.readInt32BE(EXTENSION) !== SIGNED_WITH_MILLISECONDS) return xdr.LedgerHeader.fromXdr(bytes)
  const rest = bytes.subarray(EXTENSION + 4 + SIGNED_BYTES)
  return xdr.LedgerHeader.fromXdr(Buffer.concat([bytes.subarray(0, EXTENSION), Buffer.alloc(4), rest]))
}

function sha256(...parts: (Uint8Array | string)[]): Uint8Array {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
