import { xdr } from '@stellar/stellar-sdk'
import type { Change, StoredEntry } from '../state/state.ts'

/** One entry of `stateChanges`: base64 XDR of a LedgerKey and of LedgerEntries. */
export interface StateChange {
  readonly type: 'created' | 'updated' | 'deleted'
  readonly key: string
  readonly before: string | null
  readonly after: string | null
}

/** An extended lifetime alone is not a change. A new entry has `lastModifiedLedgerSeq` 0. */
export function presentChange({ key, before, after }: Change): StateChange[] {
  if (before?.data === after?.data) return []
  const type = before ? (after ? 'updated' : 'deleted') : 'created'
  return [
    { type, key, before: encode(before), after: encode(after && !before ? { ...after, lastModified: 0 } : after) },
  ]
}

function encode(entry: StoredEntry | undefined): string | null {
  if (!entry) return null
  const { data, lastModified } = entry
  const ext = xdr.LedgerEntryExt.v0()
  return new xdr.LedgerEntry({ lastModifiedLedgerSeq: lastModified, data, ext }).toXdr('base64')
}
