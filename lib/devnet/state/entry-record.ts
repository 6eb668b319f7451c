import { xdr } from '@stellar/stellar-sdk'
import { encodeData } from './entry.ts'
import type { EntryRecord } from './record.ts'
import type { Change, StoredEntry } from './state.ts'

export function recordChange({ key, after }: Change): EntryRecord {
  return after ? recordEntry(after) : [key, null, 0, null]
}

export function recordEntry(entry: StoredEntry): EntryRecord {
  return [entry.key, encodeData(entry), entry.lastModified, entry.liveUntil ?? null]
}

/** The entry of a record; undefined for a removed one. */
export function readEntry([key, data, lastModified, liveUntil]: EntryRecord): StoredEntry | undefined {
  if (data === null) return undefined
  const decoded = xdr.LedgerEntryData.fromXdr(Buffer.from(data, 'base64'))
  return { key, data: decoded, lastModified, ...(liveUntil === null ? {} : { liveUntil }) }
}
