import { xdr } from '@stellar/stellar-sdk'
import { accountId, issuerOf } from '../state/ledger-key.ts'
import type { Inner } from './envelope.ts'
import { NETWORK_LIMITS, nonRefundableFee } from './fees.ts'
import type { Diagnostic, Failure } from './results.ts'

/** core's MAX_RESOURCE_FEE: 2^50 stroops */
const MAX_RESOURCE_FEE = 2n ** 50n

/** Ledger entries that no contract can reach. */
const FORBIDDEN = new Set(['offer', 'data', 'claimableBalance', 'liquidityPool', 'configSetting', 'ttl'])

/** core's XDRProvidesValidFee: a Soroban transaction must state a resource fee in the allowed range. */
export function hasFeeShape(inner: Inner): boolean {
  if (!inner.isSoroban) return true
  const fee = inner.soroban?.resourceFee
  return fee !== undefined && fee >= 0n && fee <= MAX_RESOURCE_FEE
}

const verdicts = new WeakMap<Inner, { readonly failure: Failure | undefined }>()

/**
 * Checks the declarations of a Soroban transaction: no memo, no muxed source (protocol 25), resources inside the
 * network's limits, a footprint of reachable keys, a resource fee that covers the non-refundable part. The result
 * doesn't depend on the ledger, so it is cached: it is needed on submission, before the ledger closes and while it is
 * applied.
 */
export function checkSoroban(inner: Inner, isInsideFeeBump: boolean): Failure | undefined {
  const cached = verdicts.get(inner)
  if (cached) return cached.failure
  const failure = judgeSoroban(inner, isInsideFeeBump)
  verdicts.set(inner, { failure })
  return failure
}

function judgeSoroban(inner: Inner, isInsideFeeBump: boolean): Failure | undefined {
  const { tx, soroban } = inner
  if (!soroban) return { code: 'txMalformed' }
  const { resources, resourceFee } = soroban
  const needed = nonRefundableFee(resources, inner.size)
  const fault =
    addressing(inner) ??
    resourceFault(inner, soroban) ??
    (isInsideFeeBump ? undefined : limit('Storage', FEE_TOO_HIGH, resourceFee, BigInt(tx.fee))) ??
    (resourceFee < needed ? fail('Value', 'ExceededLimit', FEE_TOO_LOW, resourceFee, needed) : undefined) ??
    (hasDuplicates(resources.footprint) ? fail('Storage', 'InvalidInput', DUPLICATE_KEY) : undefined)
  return fault === undefined ? undefined : { code: 'txSorobanInvalid', diagnostic: fault }
}

const FEE_TOO_HIGH = 'transaction `sorobanData.resourceFee` is higher than the full transaction fee'
const FEE_TOO_LOW = 'transaction `sorobanData.resourceFee` is lower than the actual Soroban resource fee'
const DUPLICATE_KEY =
  'Found duplicate key in the Soroban footprint; every key across read-only and read-write footprints has to be unique.'

function fail(kind: Diagnostic['kind'], code: Diagnostic['code'], text: string, ...values: bigint[]): Diagnostic {
  return { kind, code, text, values }
}

/** The error of a declared value above its limit. */
function limit(kind: Diagnostic['kind'], text: string, declared: number | bigint, most: number | bigint) {
  return declared > most ? fail(kind, 'ExceededLimit', text, BigInt(declared), BigInt(most)) : undefined
}

/** The error of the declared resources. The queue checks them even if the account has a pending transaction. */
export function resourceFault({ size }: Inner, { resources }: xdr.SorobanTransactionData): Diagnostic | undefined {
  const { readOnly, readWrite } = resources.footprint
  const keys = [...readOnly, ...readWrite]
  const classic = keys.filter(({ type }) => type === 'account' || type === 'trustline')
  const exceeded = (what: string) => `transaction ${what} resources exceed network config limit`
  const limits = NETWORK_LIMITS
  return (
    limit('Budget', exceeded('instructions'), resources.instructions, limits.instructions) ??
    limit('Storage', exceeded('byte-read'), resources.diskReadBytes, limits.diskReadBytes) ??
    limit('Storage', exceeded('byte-write'), resources.writeBytes, limits.writeBytes) ??
    limit('Storage', FOOTPRINT_TOO_LARGE, keys.length, limits.footprintEntries) ??
    limit('Storage', exceeded('entry-disk-read'), classic.length, limits.diskReadEntries) ??
    limit('Storage', exceeded('entry-write'), readWrite.length, limits.writeEntries) ??
    keys.map(keyFault).find((fault) => fault !== undefined) ??
    limit('Budget', 'total transaction size exceeds network config limit', size, limits.transactionBytes)
  )
}

const FOOTPRINT_TOO_LARGE = 'the number of entries in transaction footprint exceeds the network config limit'

function keyFault(key: xdr.LedgerKey): Diagnostic | undefined {
  if (FORBIDDEN.has(key.type)) {
    const type = BigInt(xdr.LedgerEntryType[key.type].value)
    return fail('Storage', 'UnexpectedType', 'transaction footprint contains unsupported ledger key type', type)
  }
  if (isUnreachable(key)) {
    return fail('Storage', 'InvalidInput', 'transaction footprint contains invalid trustline asset')
  }
  const text = 'transaction footprint key exceeds network config limit'
  return limit('Storage', text, key.toXdr().length, NETWORK_LIMITS.keyBytes)
}

function addressing({ tx }: Inner): Diagnostic | undefined {
  const [operation] = tx.operations
  if (operation?.body.type !== 'invokeHostFunction') return undefined
  const muxed = [tx.sourceAccount, operation.sourceAccount].some((account) => account?.type === 'keyTypeMuxedEd25519')
  if (tx.memo.type === 'memoNone' && !muxed) return undefined
  return fail('Value', 'InvalidInput', 'Soroban transactions are not allowed to use memo or muxed source account')
}

/** Trustlines that no contract can reach. */
function isUnreachable(key: xdr.LedgerKey): boolean {
  if (key.type !== 'trustline') return false
  const { accountId: holder, asset } = key.trustLine
  return (
    asset.type === 'assetTypeNative' || asset.type === 'assetTypePoolShare' || issuerOf(asset) === accountId(holder)
  )
}

function hasDuplicates({ readOnly, readWrite }: xdr.LedgerFootprint): boolean {
  const keys = [...readOnly, ...readWrite].map((key) => key.toXdr('base64'))
  return new Set(keys).size < keys.length
}
