import { mkdirSync } from 'node:fs'
import { openDatabase } from './database.ts'
import { type Expiry, openExpiry } from './expiry.ts'
import { type History, openHistory } from './history.ts'
import type { LedgerRecord } from './record.ts'
import { openState, type State, type StoredEntry } from './state.ts'

/** The entries and history of the ledger, in memory and in the database. */
interface Store {
  readonly state: State & { entries(): IterableIterator<StoredEntry> }
  readonly history: History
  readonly expiry: Expiry
  /** Stores a closed ledger, then shows it to clients. `layer` contains its changes. */
  append(ledger: { record: LedgerRecord; body: Uint8Array }, layer: State): void
  close(): void
}

/**
 * Opens the store in `directory`, or in memory for null. A store without a ledger is a new network.
 * @param historyLedgers how many ledgers clients can query
 */
export function openStore(directory: string | null, historyLedgers: number): Store {
  if (directory !== null) mkdirSync(directory, { recursive: true })
  const database = openDatabase(directory)
  const entries = database.entries()
  const state = openState(entries)
  const history = openHistory(database.read, historyLedgers)
  const expiry = openExpiry()
  for (const record of database.ledgers()) history.add(record)
  for (const entry of entries) expiry.note(entry)

  return {
    state,
    history,
    expiry,
    append({ record, body }, layer) {
      const changes = layer.changes()
      const oldest = database.append(record, body, changes, record.sequence - historyLedgers + 1)
      expiry.follow(changes)
      layer.commit()
      state.commit()
      history.add(record)
      history.forget(oldest)
    },
    close: database.close,
  }
}
