import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import type { Change, StoredEntry } from './state.ts'

const encodings = new WeakMap<xdr.LedgerEntryData, string>()

/** base64 XDR of the entry's LedgerEntryData; encoded once, since `data` never changes. */
export function encodeData({ data }: Pick<StoredEntry, 'data'>): string {
  const known = encodings.get(data)
  if (known !== undefined) return known
  const encoded = data.toXdr('base64')
  encodings.set(data, encoded)
  return encoded
}

export function isTemporary({ data }: StoredEntry): boolean {
  return data.type === 'contractData' && data.contractData.durability.name === 'temporary'
}

/** What a layer changed, as transaction meta shows it. The lifetime of a contract entry is a TTL entry of its own. */
export function metaChanges(changes: readonly Change[]): xdr.LedgerEntryChange[] {
  return changes.flatMap(({ key, before, after }) => [
    ...dataChange(key, before, after),
    ...ttlChange(key, before, after),
  ])
}

function dataChange(key: string, before: StoredEntry | undefined, after: StoredEntry | undefined) {
  if (before && after && before.lastModified === after.lastModified && encodeData(before) === encodeData(after))
    return []
  const created = after && xdr.LedgerEntryChange.ledgerEntryCreated(ledgerEntry(after.data, after.lastModified))
  if (!before) return created ? [created] : []
  const state = xdr.LedgerEntryChange.ledgerEntryState(ledgerEntry(before.data, before.lastModified))
  if (!after) return [state, xdr.LedgerEntryChange.ledgerEntryRemoved(xdr.LedgerKey.fromXdr(key, 'base64'))]
  return [state, xdr.LedgerEntryChange.ledgerEntryUpdated(ledgerEntry(after.data, after.lastModified))]
}

function ttlChange(key: string, before: StoredEntry | undefined, after: StoredEntry | undefined) {
  const old = before?.liveUntil
  const now = after?.liveUntil
  if (old === now) return []
  const keyHash = createHash('sha256').update(Buffer.from(key, 'base64')).digest()
  const lifetime = (liveUntilLedgerSeq: number, modified: number) =>
    ledgerEntry(xdr.LedgerEntryData.ttl(new xdr.TtlEntry({ keyHash, liveUntilLedgerSeq })), modified)
  const modified = after?.lastModified ?? 0
  if (old === undefined)
    return now === undefined ? [] : [xdr.LedgerEntryChange.ledgerEntryCreated(lifetime(now, modified))]
  const state = xdr.LedgerEntryChange.ledgerEntryState(lifetime(old, before?.lastModified ?? 0))
  if (now !== undefined) return [state, xdr.LedgerEntryChange.ledgerEntryUpdated(lifetime(now, modified))]
  return [state, xdr.LedgerEntryChange.ledgerEntryRemoved(xdr.LedgerKey.ttl(new xdr.LedgerKeyTtl({ keyHash })))]
}

function ledgerEntry(data: xdr.LedgerEntryData, lastModifiedLedgerSeq: number): xdr.LedgerEntry {
  return new xdr.LedgerEntry({ lastModifiedLedgerSeq, data, ext: xdr.LedgerEntryExt.v0() })
}
