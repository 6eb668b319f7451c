import { xdr } from '@stellar/stellar-sdk'
import { closeMeta, historyEntry, PROTOCOL_VERSION } from '../apply/header.ts'
import type { Ledger } from '../apply/ledger.ts'
import { RETENTION_LEDGERS } from '../state/history.ts'
import type { LedgerRecord } from '../state/record.ts'
import { type Params, RpcError } from './json-rpc.ts'
import { readCursor, readPage, startOf } from './paging.ts'

/** Seconds after which a node that closed no ledger calls itself unhealthy. */
const MAX_LATENCY = 30

export function getHealth(ledger: Ledger): object {
  const latest = ledger.history.latest()
  const oldest = ledger.history.oldest()
  const age = ledger.now() - latest.closeTime
  if (age > MAX_LATENCY) {
    throw new RpcError(-32603, `latency (${age}s) since last known ledger closed is too high (>${MAX_LATENCY}s)`)
  }
  return {
    status: 'healthy',
    latestLedger: latest.sequence,
    latestLedgerCloseTime: latest.closeTime,
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTime: oldest.closeTime,
    ledgerRetentionWindow: RETENTION_LEDGERS,
  }
}

export function getNetwork(ledger: Ledger, friendbotUrl: string): object {
  return { friendbotUrl, passphrase: ledger.passphrase, protocolVersion: PROTOCOL_VERSION }
}

export function getVersionInfo(): object {
  return {
    version: '28.0.0-devnet',
    commitHash: '0'.repeat(40),
    buildTimestamp: '1970-01-01T00:00:00',
    captiveCoreVersion: 'devnet (no stellar-core)',
    protocolVersion: PROTOCOL_VERSION,
  }
}

export function getLatestLedger(ledger: Ledger): object {
  const latest = ledger.history.latest()
  return {
    id: latest.hash,
    protocolVersion: PROTOCOL_VERSION,
    sequence: latest.sequence,
    closeTime: String(latest.closeTime),
    headerXdr: latest.header,
    metadataXdr: closeMeta(entryOf(latest)).toXdr('base64'),
  }
}

export function getLedgers(ledger: Ledger, params: Params): object {
  const { history } = ledger
  const page = readPage(params, { initial: 50, maximum: 200 })
  const start = startOf(page, history) ?? Number(readCursor(page.cursor ?? '')) + 1
  const latest = history.latest()
  const oldest = history.oldest()
  const end = Math.min(start + page.limit - 1, latest.sequence)
  const ledgers: object[] = []
  for (let sequence = Math.max(start, oldest.sequence); sequence <= end; sequence += 1) {
    const record = history.ledger(sequence)
    if (record) ledgers.push(describeLedger(record))
  }
  return {
    ledgers,
    latestLedger: latest.sequence,
    latestLedgerCloseTime: latest.closeTime,
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTime: oldest.closeTime,
    cursor: String(ledgers.length > 0 ? end : start - 1),
  }
}

function describeLedger(record: LedgerRecord): object {
  const entry = entryOf(record)
  return {
    hash: record.hash,
    sequence: record.sequence,
    ledgerCloseTime: String(record.closeTime),
    headerXdr: entry.toXdr('base64'),
    metadataXdr: closeMeta(entry).toXdr('base64'),
  }
}

function entryOf(record: LedgerRecord): xdr.LedgerHeaderHistoryEntry {
  return historyEntry(xdr.LedgerHeader.fromXdr(record.header, 'base64'), Buffer.from(record.hash, 'hex'))
}
