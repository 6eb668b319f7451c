import type { Journal, Place } from './journal.ts'
import type { EventRecord, LedgerRecord, Span, TransactionBody, TransactionRecord } from './record.ts'

/** Closed ledgers that can be asked for. */
export const RETENTION_LEDGERS = 17_280

/** A transaction with the ledger that holds it. `order` counts from 1. */
export interface Found {
  readonly ledger: LedgerRecord
  readonly transaction: TransactionRecord
  readonly order: number
}

/** The retained ledgers. An index is in memory; transactions and events are read from the journal. */
export interface History {
  add(ledger: LedgerRecord, place: Place): void
  oldest(): LedgerRecord
  latest(): LedgerRecord
  ledger(sequence: number): LedgerRecord | undefined
  /** Finds a transaction by its hash (hex); a fee bump also by the hash of the transaction inside. */
  find(hash: string): Found | undefined
  body(found: Found): TransactionBody
  events(ledger: LedgerRecord): EventRecord[]
  /** Forgets the ledgers before `sequence`. */
  forget(sequence: number): void
}

export function openHistory(journal: Pick<Journal, 'read'>): History {
  const ledgers = new Map<number, { record: LedgerRecord; place: Place }>()
  const hashes = new Map<string, { sequence: number; index: number }>()
  let oldest = 0
  let latest = 0

  const read = (sequence: number, [offset, length]: Span) => {
    const place = ledgers.get(sequence)?.place
    if (!place) throw new Error(`ledger ${sequence} is not retained`)
    return JSON.parse(journal.read(place, offset, length).toString())
  }
  const forgetOldest = () => {
    for (const { hash, innerHash } of ledgers.get(oldest)?.record.transactions ?? []) {
      for (const name of [hash, innerHash]) {
        if (name !== undefined && hashes.get(name)?.sequence === oldest) hashes.delete(name)
      }
    }
    ledgers.delete(oldest)
    oldest += 1
  }
  const recordOf = (sequence: number): LedgerRecord => {
    const found = ledgers.get(sequence)
    if (!found) throw new Error(`ledger ${sequence} is not retained`)
    return found.record
  }

  return {
    add(record, place) {
      ledgers.set(record.sequence, { record, place })
      for (const [index, { hash, innerHash }] of record.transactions.entries()) {
        hashes.set(hash, { sequence: record.sequence, index })
        if (innerHash !== undefined) hashes.set(innerHash, { sequence: record.sequence, index })
      }
      latest = record.sequence
      if (oldest === 0) oldest = record.sequence
      while (latest - oldest >= RETENTION_LEDGERS) forgetOldest()
    },
    oldest: () => recordOf(oldest),
    latest: () => recordOf(latest),
    ledger: (sequence) => ledgers.get(sequence)?.record,
    find(hash) {
      const at = hashes.get(hash)
      const ledger = at && ledgers.get(at.sequence)?.record
      const transaction = at && ledger?.transactions[at.index]
      return transaction && { ledger, transaction, order: at.index + 1 }
    },
    body: ({ ledger, transaction }) => read(ledger.sequence, transaction.at),
    events: (ledger) => (ledger.events ? read(ledger.sequence, ledger.events.at) : []),
    forget(sequence) {
      while (oldest < sequence && oldest < latest) forgetOldest()
    },
  }
}
