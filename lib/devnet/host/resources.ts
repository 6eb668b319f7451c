import type { xdr } from '@stellar/stellar-sdk'
import type { State } from '../state/state.ts'
import { entryBytes, NETWORK_LIMITS } from '../transaction/fees.ts'
import { entryKey } from './entry-key.ts'
import { hostError } from './host-error.ts'

/** What the transaction declared; a call that needs more fails with `resource-limit-exceeded`. */
export type DeclaredResources = Pick<xdr.SorobanResources, 'instructions' | 'diskReadBytes' | 'writeBytes'>

/** Bytes of the accounts and trustlines in the footprint, the only entries that are read from disk. */
export function diskReadBytes(state: State, { readOnly, readWrite }: xdr.LedgerFootprint): number {
  const classic = [...readOnly, ...readWrite].filter(({ type }) => type === 'account' || type === 'trustline')
  return bytesOfAll(state, classic)
}

/** Bytes of what is left under the read-write keys; rent and lifetimes do not count. */
export function writeBytes(state: State, { readWrite }: xdr.LedgerFootprint): number {
  return bytesOfAll(state, readWrite)
}

/** Bytes that eventsFee charges: contract events and the return value. */
export function eventBytes(events: readonly xdr.ContractEvent[], returnValue: xdr.ScVal): number {
  return events.reduce((sum, event) => sum + event.toXdr().length, returnValue.toXdr().length)
}

export function checkReads(state: State, footprint: xdr.LedgerFootprint, declared?: DeclaredResources): void {
  check('disk read', diskReadBytes(state, footprint), declared?.diskReadBytes ?? NETWORK_LIMITS.diskReadBytes)
}

export function checkWrites(state: State, footprint: xdr.LedgerFootprint, declared?: DeclaredResources): void {
  check('write', writeBytes(state, footprint), declared?.writeBytes ?? NETWORK_LIMITS.writeBytes)
}

export function checkEvents(events: readonly xdr.ContractEvent[], returnValue: xdr.ScVal): void {
  check('event', eventBytes(events, returnValue), NETWORK_LIMITS.eventBytes)
}

function check(what: string, bytes: number, limit: number): void {
  if (bytes > limit) throw hostError('Budget', 'ExceededLimit', `${what} bytes ${bytes} exceed the limit ${limit}`)
}

function bytesOfAll(state: State, keys: xdr.LedgerKey[]): number {
  return keys.reduce((sum, key) => {
    const entry = state.get(entryKey(key).id)
    return entry ? sum + entryBytes(entry) : sum
  }, 0)
}
