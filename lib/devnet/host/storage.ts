import { xdr } from '@stellar/stellar-sdk'
import { compareKeys } from '../state/key-order.ts'
import type { State, StoredEntry } from '../state/state.ts'
import { NETWORK_LIMITS } from '../transaction/fees.ts'
import { type EntryKey, entryKey } from './entry-key.ts'
import { hostError } from './host-error.ts'

/**
 * The entries that one host function may access. Recording, it collects the keys; enforcing, it rejects keys that the
 * footprint lacks: a key outside it with Error(Storage, ExceededLimit), a write to a read-only key with
 * Error(Storage, InvalidAction).
 */
export interface Storage {
  get(key: EntryKey): StoredEntry | undefined
  /** A new persistent entry lives for 120,960 ledgers, a temporary one for 720, or until `liveUntil` if that is later. */
  put(key: EntryKey, data: xdr.LedgerEntryData, liveUntil?: number): void
  remove(key: EntryKey): void
  /** Extends the entry's lifetime to `extendTo` ledgers from now if fewer than `threshold` are left. Needs no write access. */
  extend(key: EntryKey, threshold: number, extendTo: number): void
  footprint(): xdr.LedgerFootprint
}

interface Touched {
  readonly key: xdr.LedgerKey
  written: boolean
}

export function openStorage(state: State, sequence: number, declared: xdr.LedgerFootprint | 'record'): Storage {
  const touched = new Map<string, Touched>()
  if (declared !== 'record') {
    for (const key of declared.readOnly) touched.set(entryKey(key).id, { key, written: false })
    for (const key of declared.readWrite) touched.set(entryKey(key).id, { key, written: true })
  }

  const access = ({ id, key }: EntryKey, write: boolean) => {
    const entry = touched.get(id)
    if (entry === undefined) {
      if (declared !== 'record') {
        throw hostError('Storage', 'ExceededLimit', `trying to access an entry outside of the footprint: ${id}`)
      }
      touched.set(id, { key, written: write })
    } else if (write && !entry.written) {
      if (declared !== 'record') {
        throw hostError('Storage', 'InvalidAction', `trying to write to a read-only entry of the footprint: ${id}`)
      }
      entry.written = true
    }
  }

  const find = (key: EntryKey): StoredEntry | undefined => {
    const entry = state.get(key.id)
    if (entry?.liveUntil === undefined || entry.liveUntil >= sequence) return entry
    if (isTemporary(key.key)) return undefined
    // Nothing is archived here: an expired persistent entry is restored when used, as in CAP-66, and
    // its rent is charged with the call.
    const restored = { ...entry, liveUntil: sequence + NETWORK_LIMITS.persistentTtl - 1 }
    state.put(restored)
    return restored
  }

  const firstLiveUntil = (key: xdr.LedgerKey) => {
    if (key.type !== 'contractData' && key.type !== 'contractCode') return undefined
    return sequence + (isTemporary(key) ? NETWORK_LIMITS.temporaryTtl : NETWORK_LIMITS.persistentTtl) - 1
  }

  return {
    get: (key) => {
      access(key, false)
      return find(key)
    },
    put: (key, data, liveUntil = 0) => {
      access(key, true)
      const until = find(key)?.liveUntil ?? firstLiveUntil(key.key)
      state.put({
        key: key.id,
        data,
        lastModified: sequence,
        ...(until === undefined ? {} : { liveUntil: Math.max(until, liveUntil) }),
      })
    },
    remove: (key) => {
      access(key, true)
      state.remove(key.id)
    },
    extend: (key, threshold, extendTo) => {
      access(key, false)
      const entry = find(key)
      if (entry?.liveUntil === undefined || entry.liveUntil - sequence > threshold) return
      const liveUntil = sequence + Math.min(extendTo, NETWORK_LIMITS.maximumTtl - 1)
      if (liveUntil > entry.liveUntil) state.put({ ...entry, liveUntil })
    },
    footprint: () => {
      const readOnly: xdr.LedgerKey[] = []
      const readWrite: xdr.LedgerKey[] = []
      for (const { key, written } of touched.values()) (written ? readWrite : readOnly).push(key)
      if (declared === 'record') for (const keys of [readOnly, readWrite]) keys.sort(compareKeys)
      return new xdr.LedgerFootprint({ readOnly, readWrite })
    },
  }
}

function isTemporary(key: xdr.LedgerKey): boolean {
  return key.type === 'contractData' && key.contractData.durability.name === 'temporary'
}
