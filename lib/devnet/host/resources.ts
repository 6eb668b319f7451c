import type { xdr } from '@stellar/stellar-sdk'
import type { State } from '../state/state.ts'
import { entryBytes, NETWORK_LIMITS } from '../transaction/fees.ts'
import { entryKey } from './entry-key.ts'
import { hostError } from './host-error.ts'
import { u64 } from './scval.ts'

/** The declared resources; a call that needs more fails with `resource-limit-exceeded`. */
export type DeclaredResources = Pick<xdr.SorobanResources, 'instructions' | 'diskReadBytes' | 'writeBytes'>

/** Bytes of the accounts and trustlines in the footprint, the only entries that are read from disk. */
export function diskReadBytes(state: State, { readOnly, readWrite }: xdr.LedgerFootprint): number {
  return bytesOfAll(state, [...readOnly, ...readWrite].filter(isOnDisk))
}

/** Bytes of the entries under the read-write keys; rent and lifetimes don't count. */
export function writeBytes(state: State, { readWrite }: xdr.LedgerFootprint): number {
  return bytesOfAll(state, readWrite)
}

/** Bytes that eventsFee charges: contract events and the return value. */
export function eventBytes(events: readonly xdr.ContractEvent[], returnValue: xdr.ScVal): number {
  return events.reduce((sum, event) => sum + event.toXdr().length, returnValue.toXdr().length)
}

export function checkReads(
  state: State,
  { readOnly, readWrite }: xdr.LedgerFootprint,
  declared?: DeclaredResources,
): void {
  const classic = [...readOnly, ...readWrite].filter(isOnDisk)
  const limit = declared?.diskReadBytes ?? NETWORK_LIMITS.diskReadBytes
  meter(sizesOf(state, classic), limit, 'operation byte-read resources exceeds amount specified')
}

export function checkWrites(state: State, { readWrite }: xdr.LedgerFootprint, declared?: DeclaredResources): void {
  const limit = declared?.writeBytes ?? NETWORK_LIMITS.writeBytes
  meter(sizesOf(state, readWrite), limit, 'operation byte-write resources exceeds amount specified')
}

export function checkEvents(events: readonly xdr.ContractEvent[], returnValue: xdr.ScVal): void {
  const limit = NETWORK_LIMITS.eventBytes
  const sizes = events.map((event) => event.toXdr().length)
  meter(sizes, limit, 'total events size exceeds network config maximum')
  const all = eventBytes(events, returnValue)
  if (all > limit) throw exceeded('return value pushes events size above network config maximum', all, limit)
}

/** Adds up the sizes one by one like core: the error contains the first sum above the limit, not the total. */
function meter(sizes: readonly number[], limit: number, text: string): void {
  let used = 0
  for (const size of sizes) {
    used += size
    if (used > limit) throw exceeded(text, used, limit)
  }
}

function exceeded(text: string, used: number, limit: number) {
  return hostError('Budget', 'ExceededLimit', text, [u64(BigInt(used)), u64(BigInt(limit))])
}

const isOnDisk = ({ type }: xdr.LedgerKey) => type === 'account' || type === 'trustline'

function bytesOfAll(state: State, keys: readonly xdr.LedgerKey[]): number {
  return sizesOf(state, keys).reduce((sum, size) => sum + size, 0)
}

/** Bytes of the existing entries. */
function sizesOf(state: State, keys: readonly xdr.LedgerKey[]): number[] {
  return keys.flatMap((key) => {
    const entry = state.get(entryKey(key).id)
    return entry ? [entryBytes(entry)] : []
  })
}
