import { xdr } from '@stellar/stellar-sdk'
import { accountId, issuerOf } from '../state/ledger-key.ts'
import type { Inner } from './envelope.ts'
import { NETWORK_LIMITS, nonRefundableFee } from './fees.ts'
import type { Failure } from './results.ts'

/** core's MAX_RESOURCE_FEE: 2^50 stroops */
const MAX_RESOURCE_FEE = 2n ** 50n

/** Ledger entries that no contract can reach. */
const FORBIDDEN = new Set(['offer', 'data', 'claimableBalance', 'liquidityPool', 'configSetting', 'ttl'])

/** Whether the fee has a shape at all (XDRProvidesValidFee): a Soroban transaction says what its resources cost. */
export function hasFeeShape(inner: Inner): boolean {
  if (!inner.isSoroban) return true
  const fee = inner.soroban?.resourceFee
  return fee !== undefined && fee >= 0n && fee <= MAX_RESOURCE_FEE
}

const verdicts = new WeakMap<Inner, { readonly failure: Failure | undefined }>()

/**
 * What a Soroban transaction declares: no memo, no muxed source (protocol 25), resources inside the network's limits,
 * a footprint of reachable keys, a resource fee that covers at least the part that is never paid back. The ledger has
 * no say in it, so it is worked out once, though asked for on arrival, before the ledger and in it.
 */
export function checkSoroban(inner: Inner, isInsideFeeBump: boolean): Failure | undefined {
  const known = verdicts.get(inner)
  if (known) return known.failure
  const failure = judgeSoroban(inner, isInsideFeeBump)
  verdicts.set(inner, { failure })
  return failure
}

function judgeSoroban(inner: Inner, isInsideFeeBump: boolean): Failure | undefined {
  const { tx, soroban } = inner
  if (!soroban) return { code: 'txMalformed' }
  const { resources, resourceFee } = soroban
  const isTooCheap = resourceFee < nonRefundableFee(resources, inner.size)
  const fault =
    addressing(inner) ??
    resourceFault(inner, soroban) ??
    (!isInsideFeeBump && resourceFee > BigInt(tx.fee) ? 'resource fee exceeds the transaction fee' : undefined) ??
    (isTooCheap ? 'transaction `sorobanData.resourceFee` is lower than the actual Soroban resource fee' : undefined) ??
    (hasDuplicates(resources.footprint) ? 'footprint contains a duplicate key' : undefined)
  return fault === undefined ? undefined : { code: 'txSorobanInvalid', diagnostic: fault }
}

/** The declared resources alone: also checked for a transaction that then finds its account taken in the queue. */
export function resourceFault({ size }: Inner, { resources }: xdr.SorobanTransactionData): string | undefined {
  const { readOnly, readWrite } = resources.footprint
  const keys = [...readOnly, ...readWrite]
  if (resources.instructions > NETWORK_LIMITS.instructions) return 'transaction instructions exceed network limit'
  if (resources.diskReadBytes > NETWORK_LIMITS.diskReadBytes) return 'transaction read bytes exceed network limit'
  if (resources.writeBytes > NETWORK_LIMITS.writeBytes) return 'transaction write bytes exceed network limit'
  if (keys.length > NETWORK_LIMITS.footprintEntries) return 'transaction footprint exceeds network limit'
  if (readWrite.length > NETWORK_LIMITS.writeEntries) return 'transaction write entries exceed network limit'
  const classic = keys.filter(({ type }) => type === 'account' || type === 'trustline')
  if (classic.length > NETWORK_LIMITS.diskReadEntries) return 'transaction read entries exceed network limit'
  if (keys.some(isUnreachable)) return 'transaction footprint contains an invalid ledger key'
  if (keys.some((key) => key.toXdr().length > NETWORK_LIMITS.keyBytes)) return 'footprint key exceeds network limit'
  if (size > NETWORK_LIMITS.transactionBytes) return 'transaction size exceeds network limit'
  return undefined
}

function addressing({ tx }: Inner): string | undefined {
  const [operation] = tx.operations
  if (operation?.body.type !== 'invokeHostFunction') return undefined
  if (tx.memo.type !== 'memoNone') return 'Soroban transactions do not support memos'
  const muxed = [tx.sourceAccount, operation.sourceAccount].some((account) => account?.type === 'keyTypeMuxedEd25519')
  return muxed ? 'Soroban transactions do not support muxed source accounts' : undefined
}

function isUnreachable(key: xdr.LedgerKey): boolean {
  if (key.type !== 'trustline') return FORBIDDEN.has(key.type)
  const { accountId: holder, asset } = key.trustLine
  return (
    asset.type === 'assetTypeNative' || asset.type === 'assetTypePoolShare' || issuerOf(asset) === accountId(holder)
  )
}

function hasDuplicates({ readOnly, readWrite }: xdr.LedgerFootprint): boolean {
  const keys = [...readOnly, ...readWrite].map((key) => key.toXdr('base64'))
  return new Set(keys).size < keys.length
}

/** How the RPC shows the reason of a txSOROBAN_INVALID: one diagnostic event. */
export function diagnosticEvent(reason: string): xdr.DiagnosticEvent {
  const error = xdr.ScError.sceStorage(xdr.ScErrorCode.scecInvalidInput)
  const body = new xdr.ContractEventV0({
    topics: [xdr.ScVal.scvSymbol('error'), xdr.ScVal.scvError(error)],
    data: xdr.ScVal.scvString(reason),
  })
  return new xdr.DiagnosticEvent({
    inSuccessfulContractCall: false,
    event: new xdr.ContractEvent({
      ext: xdr.ExtensionPoint.v0(),
      contractId: null,
      type: xdr.ContractEventType.diagnostic,
      body: xdr.ContractEventBody.v0(body),
    }),
  })
}
