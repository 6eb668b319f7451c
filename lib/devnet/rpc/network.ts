import { setImmediate } from 'node:timers/promises'
import { xdr } from '@stellar/stellar-sdk'
import { closeMeta, encodeWithHeader, headerEntry } from '../apply/close-meta.ts'
import type { Ledger } from '../apply/ledger.ts'
import type { History } from '../state/history.ts'
import type { LedgerRecord } from '../state/record.ts'
import { invalidParams, type Params, RpcError } from './json-rpc.ts'
import { readCursor, readLedgerPage } from './paging.ts'
import { formatXdr, type XdrFormat } from './xdr-format.ts'

/** Seconds since the last ledger after which a node is unhealthy. */
const MAX_LATENCY = 30

export function getHealth(ledger: Ledger): object {
  const latest = ledger.history.latest()
  const oldest = ledger.history.oldest()
  const age = ledger.now() - latest.closeTime
  if (age > MAX_LATENCY) {
    throw new RpcError(
      -32603,
      `latency (${duration(age)}) since last known ledger closed is too high (>${MAX_LATENCY}s)`,
    )
  }
  return {
    status: 'healthy',
    latestLedger: latest.sequence,
    latestLedgerCloseTime: latest.closeTime,
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTime: oldest.closeTime,
    ledgerRetentionWindow: ledger.history.window,
  }
}

/** Seconds in Go's words: 1h0m5s. */
function duration(seconds: number): string {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60)]
  const parts = [hours > 0 ? `${hours}h` : '', minutes > 0 ? `${minutes % 60}m` : '', `${seconds % 60}s`]
  return parts.join('')
}

export function getNetwork(ledger: Ledger, friendbotUrl: string): object {
  return { friendbotUrl, passphrase: ledger.passphrase, protocolVersion: ledger.context().protocol }
}

export function getVersionInfo(ledger: Ledger): object {
  return {
    version: '28.0.0-devnet',
    commitHash: '0'.repeat(40),
    buildTimestamp: '1970-01-01T00:00:00',
    captiveCoreVersion: 'devnet (no stellar-core)',
    protocolVersion: ledger.context().protocol,
  }
}

/** Always base64: this method has no xdrFormat. */
export function getLatestLedger({ history, context }: Ledger): object {
  const latest = history.latest()
  return {
    id: latest.hash,
    protocolVersion: context().protocol,
    sequence: latest.sequence,
    closeTime: String(latest.closeTime),
    headerXdr: latest.header,
    metadataXdr: metadataOf(latest, history),
  }
}

/** A page of busy ledgers is a hundred megabytes, so it yields between ledgers. */
export async function getLedgers(ledger: Ledger, params: Params): Promise<object> {
  const { history } = ledger
  const page = readLedgerPage('GetLedgersRequest', params, history)
  const latest = history.latest()
  const oldest = history.oldest()
  const start = page.cursor === undefined ? (page.startLedger ?? 0) : Number(readCursor(page.cursor, 'ledger')) + 1
  if (start < oldest.sequence || start > latest.sequence) {
    throw invalidParams(
      `cursor ('${page.cursor}') must be between the oldest ledger: ${oldest.sequence} and the latest ledger: ${latest.sequence} for this rpc instance`,
    )
  }
  const end = Math.min(start + page.limit - 1, latest.sequence)
  const ledgers: object[] = []
  for (let sequence = start; sequence <= end; sequence += 1) {
    const record = history.ledger(sequence)
    if (record) ledgers.push(describeLedger(record, history, page.format))
    await setImmediate()
  }
  return {
    ledgers,
    latestLedger: latest.sequence,
    latestLedgerCloseTime: latest.closeTime,
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTime: oldest.closeTime,
    cursor: String(end),
  }
}

function describeLedger(record: LedgerRecord, history: History, format: XdrFormat): object {
  return {
    hash: record.hash,
    sequence: record.sequence,
    ledgerCloseTime: String(record.closeTime),
    // In JSON, the real server also returns these two fields, empty.
    ...(format === 'json' && { headerXdr: '', metadataXdr: '' }),
    ...formatXdr(format, {
      header: { type: xdr.LedgerHeaderHistoryEntry, xdr: encodeWithHeader(headerEntry(record), record) },
      metadata: { type: xdr.LedgerCloseMeta, xdr: metadataOf(record, history) },
    }),
  }
}

function metadataOf(ledger: LedgerRecord, history: History): string {
  const bodies = ledger.transactions.map((transaction, index) =>
    history.body({ ledger, transaction, order: index + 1 }),
  )
  return encodeWithHeader(closeMeta(ledger, bodies), ledger)
}
