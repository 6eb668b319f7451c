import { xdr } from '@stellar/stellar-sdk'
import type { Change, StoredEntry } from '../state/state.ts'

/** One entry of `stateChanges`; entries in base64 XDR of a LedgerEntry. A longer life alone is no change. */
export function presentChange({ key, before, after }: Change): object[] {
  if (before?.data === after?.data) return []
  const type = before ? (after ? 'updated' : 'deleted') : 'created'
  return [{ type, key, before: encode(before), after: encode(after) }]
}

function encode(entry: StoredEntry | undefined): string | null {
  if (!entry) return null
  const { data, lastModified } = entry
  const ext = xdr.LedgerEntryExt.v0()
  return new xdr.LedgerEntry({ lastModifiedLedgerSeq: lastModified, data, ext }).toXdr('base64')
}
