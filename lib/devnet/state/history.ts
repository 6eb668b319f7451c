import type { EventRecord, LedgerRecord, Span, TransactionBody, TransactionRecord } from './record.ts'

/** A transaction with its ledger. `order` counts from 1. */
export interface LocatedTransaction {
  readonly ledger: LedgerRecord
  readonly transaction: TransactionRecord
  readonly order: number
}

/** The retained ledgers. The index is in memory; transactions and events are read from the database. */
export interface History {
  /** the maximum number of retained ledgers */
  readonly window: number
  add(ledger: LedgerRecord): void
  oldest(): LedgerRecord
  latest(): LedgerRecord
  ledger(sequence: number): LedgerRecord | undefined
  /** Finds a transaction by its hash (hex), or a fee bump also by its inner hash. */
  find(hash: string): LocatedTransaction | undefined
  body(location: LocatedTransaction): TransactionBody
  events(ledger: LedgerRecord): EventRecord[]
  /** Forgets the ledgers before `sequence`. */
  forget(sequence: number): void
}

export function openHistory(readBody: (sequence: number, span: Span) => string, window: number): History {
  const ledgers = new Map<number, LedgerRecord>()
  const hashes = new Map<string, { sequence: number; index: number }>()
  let oldest = 0
  let latest = 0

  const read = (sequence: number, span: Span) => JSON.parse(readBody(sequence, span))
  const forgetOldest = () => {
    for (const { hash, innerHash } of ledgers.get(oldest)?.transactions ?? []) {
      for (const name of [hash, innerHash]) {
        if (name !== undefined && hashes.get(name)?.sequence === oldest) hashes.delete(name)
      }
    }
    ledgers.delete(oldest)
    oldest += 1
  }
  const recordOf = (sequence: number): LedgerRecord => {
    const record = ledgers.get(sequence)
    if (!record) throw new Error(`ledger ${sequence} is not retained`)
    return record
  }

  return {
    window,
    add(record) {
      ledgers.set(record.sequence, record)
      for (const [index, { hash, innerHash }] of record.transactions.entries()) {
        hashes.set(hash, { sequence: record.sequence, index })
        if (innerHash !== undefined) hashes.set(innerHash, { sequence: record.sequence, index })
      }
      latest = record.sequence
      if (oldest === 0) oldest = record.sequence
      while (latest - oldest >= window) forgetOldest()
    },
    oldest: () => recordOf(oldest),
    latest: () => recordOf(latest),
    ledger: (sequence) => ledgers.get(sequence),
    find(hash) {
      const at = hashes.get(hash)
      const ledger = at && ledgers.get(at.sequence)
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
