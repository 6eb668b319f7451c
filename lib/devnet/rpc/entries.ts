import { xdr } from '@stellar/stellar-sdk'
import type { Ledger } from '../apply/ledger.ts'
import { encodeData, isTemporary } from '../state/entry.ts'
import type { StoredEntry } from '../state/state.ts'
import { internalError, invalidParams, type Params, wrongType } from './json-rpc.ts'
import { formatXdr, readFormat, type XdrFormat } from './xdr-format.ts'

const MAX_KEYS = 200
const MAX_KEY_BYTES = 16 * 1024

const EMPTY_EXTENSION = xdr.LedgerEntryExt.v0().toXdr('base64')

/** The existing entries in the order of the request, each with its key as the request spells it. */
export function getLedgerEntries({ state, history }: Ledger, params: Params): object {
  const format = readFormat(params)
  const keys = params.keys ?? []
  if (!Array.isArray(keys)) throw wrongType(keys, 'GetLedgerEntriesRequest.keys', '[]string')
  if (keys.length > MAX_KEYS) {
    throw invalidParams(`key count (${keys.length}) exceeds maximum supported (${MAX_KEYS})`)
  }
  const names = keys.map(readKey)
  // The real RPC queries its node, which rejects an empty list and a repeated key.
  if (names.length === 0) throw internalError('could not query captive core: no keys specified in request')
  if (new Set(names).size < names.length) {
    throw internalError('could not query captive core: http request failed with non-200 status code (400)')
  }
  const latestLedger = history.latest().sequence
  const entries = names.flatMap((name, index) => {
    const entry = state.get(name)
    return entry && isLive(entry, latestLedger) ? [describe(entry, String(keys[index]), latestLedger, format)] : []
  })
  return { entries, latestLedger }
}

function readKey(key: unknown, index: number): string {
  try {
    if (typeof key !== 'string' || key.length > MAX_KEY_BYTES || key.length % 4 > 0) throw new Error('not a key')
    const decoded = xdr.LedgerKey.fromXdr(key, 'base64')
    if (decoded.type !== 'ttl') return decoded.toXdr('base64')
  } catch {
    throw invalidParams(`cannot unmarshal key value ${String(key).slice(0, 200)} at index ${index}`)
  }
  throw invalidParams('ledger ttl entries cannot be queried directly')
}

/** An expired temporary entry is absent even before it is evicted. */
function isLive(entry: StoredEntry, latestLedger: number): boolean {
  return !isTemporary(entry) || (entry.liveUntil ?? latestLedger) >= latestLedger
}

/** Nothing is archived here: a persistent entry stays live beyond its paid lifetime. */
function describe(entry: StoredEntry, key: string, latestLedger: number, format: XdrFormat): object {
  const data = { type: xdr.LedgerEntryData, xdr: encodeData(entry) }
  return {
    ...(format === 'json'
      ? formatXdr(format, { key: { type: xdr.LedgerKey, xdr: key }, data })
      : { key, xdr: encodeData(entry) }),
    ...formatXdr(format, { ext: { type: xdr.LedgerEntryExt, xdr: EMPTY_EXTENSION } }),
    lastModifiedLedgerSeq: entry.lastModified,
    ...(entry.liveUntil === undefined ? {} : { liveUntilLedgerSeq: Math.max(entry.liveUntil, latestLedger) }),
  }
}
