import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import { BASE_RESERVE } from '../state/account.ts'
import { BASE_FEE } from '../transaction/validity.ts'

/** The newest protocol whose headers stellar-sdk 17 can decode: protocol 30 adds arms that it can't. */
export const PROTOCOL_VERSION = 28

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
}

/** The header of the next ledger. Its hash covers the ledger's effects and the previous ledger. */
export function makeHeader(next: NextHeader): { header: xdr.LedgerHeader; hash: Uint8Array } {
  const header = new xdr.LedgerHeader({
    ledgerVersion: PROTOCOL_VERSION,
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
  return { header, hash: sha256(header.toXdr()) }
}

function sha256(...parts: (Uint8Array | string)[]): Uint8Array {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
