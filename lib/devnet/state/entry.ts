import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import type { Change, StoredEntry } from './state.ts'

const encodings = new WeakMap<xdr.LedgerEntryData, string>()

/** base64 XDR of the entry's LedgerEntryData; encoded once, since `data` never changes. */
export function encodeData({ data }: Pick<StoredEntry, 'data'>): string {
  const cached = encodings.get(data)
  if (cached !== undefined) return cached
  const encoded = data.toXdr('base64')
  encodings.set(data, encoded)
  return encoded
}

export function isTemporary({ data }: StoredEntry): boolean {
  return data.type === 'contractData' && data.contractData.durability.name === 'temporary'
}

/** The changes of a layer as in transaction meta, where the lifetime of a contract entry is a separate entry. */
export function metaChanges(changes: readonly Change[]): xdr.LedgerEntryChange[] {
  return changes.flatMap(({ key, before, after }) => [
    ...dataChange(key, before, after),
    ...ttlChange(key, before, after),
  ])
}

function dataChange(key: string, before: StoredEntry | undefined, after: StoredEntry | undefined) {
  if (before && after && before.lastModified === after.lastModified && encodeData(before) === encodeData(after))
    return []
  const entry = (stored: StoredEntry | undefined) => stored && ledgerEntry(stored.data, stored.lastModified)
  return entryChange(() => xdr.LedgerKey.fromXdr(key, 'base64'), entry(before), entry(after))
}

function ttlChange(key: string, before: StoredEntry | undefined, after: StoredEntry | undefined) {
  if (before?.liveUntil === after?.liveUntil) return []
  const keyHash = createHash('sha256').update(Buffer.from(key, 'base64')).digest()
  const entry = (stored: StoredEntry | undefined) => {
    if (stored?.liveUntil === undefined) return undefined
    const ttl = new xdr.TtlEntry({ keyHash, liveUntilLedgerSeq: stored.liveUntil })
    return ledgerEntry(xdr.LedgerEntryData.ttl(ttl), stored.lastModified)
  }
  return entryChange(() => xdr.LedgerKey.ttl(new xdr.LedgerKeyTtl({ keyHash })), entry(before), entry(after))
}

function entryChange(key: () => xdr.LedgerKey, before?: xdr.LedgerEntry, after?: xdr.LedgerEntry) {
  const Change = xdr.LedgerEntryChange
  if (!before) return after ? [Change.ledgerEntryCreated(after)] : []
  const state = Change.ledgerEntryState(before)
  return [state, after ? Change.ledgerEntryUpdated(after) : Change.ledgerEntryRemoved(key())]
}

function ledgerEntry(data: xdr.LedgerEntryData, lastModifiedLedgerSeq: number): xdr.LedgerEntry {
  return new xdr.LedgerEntry({ lastModifiedLedgerSeq, data, ext: xdr.LedgerEntryExt.v0() })
}
