import { DatabaseSync } from 'node:sqlite'
import { xdr } from '@stellar/stellar-sdk'
import { dataPath } from '#lib/config/data-directory.ts'
import { encodeData } from './entry.ts'
import type { LedgerRecord, Span } from './record.ts'
import type { Change, StoredEntry } from './state.ts'

/** The closed ledgers and the current entries, in SQLite. */
export interface Database {
  /** The stored ledgers, oldest first. */
  ledgers(): LedgerRecord[]
  entries(): StoredEntry[]
  /**
   * Stores a closed ledger and its changes, and deletes ledgers before `oldest`, and more while bodies exceed the size
   * limit, in one transaction. Returns the oldest remaining ledger.
   */
  append(record: LedgerRecord, body: Uint8Array, changes: readonly Change[], oldest: number): number
  /** Reads a part of a ledger's body. */
  read(sequence: number, span: Span): string
  close(): void
}

/** Beyond this, the oldest ledgers are deleted before their window ends, so that a busy ledger cannot fill the disk. */
const MAX_BODY_BYTES = 2 * 1024 ** 3

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS ledgers (sequence INTEGER PRIMARY KEY, record TEXT NOT NULL, body BLOB NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, data TEXT NOT NULL, last_modified INTEGER NOT NULL, live_until INTEGER
  ) STRICT;`

/**
 * Opens `ledger.sqlite` in a directory, or a database in memory for null. In a directory, every ledger is on disk
 * before a client can read it: SQLite syncs its write-ahead log at each commit.
 */
export function openDatabase(directory: string | null, maxBodyBytes = MAX_BODY_BYTES): Database {
  const database = new DatabaseSync(directory === null ? ':memory:' : dataPath(directory, 'ledger.sqlite'))
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${SCHEMA}`)
  const insertLedger = database.prepare('INSERT INTO ledgers VALUES (?, ?, ?)')
  const putEntry = database.prepare('INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)')
  const removeEntry = database.prepare('DELETE FROM entries WHERE key = ?')
  const deleteBefore = database.prepare('DELETE FROM ledgers WHERE sequence < ? RETURNING length(body) AS bytes')
  const findOldest = database.prepare('SELECT min(sequence) AS oldest FROM ledgers')
  const readBody = database.prepare('SELECT substr(body, ?, ?) AS part FROM ledgers WHERE sequence = ?')
  let bodyBytes = Number(database.prepare('SELECT total(length(body)) AS bytes FROM ledgers').get()?.bytes)

  return {
    ledgers: () =>
      database
        .prepare('SELECT record FROM ledgers ORDER BY sequence')
        .all()
        .map(({ record }) => JSON.parse(String(record))),
    entries: () => database.prepare('SELECT * FROM entries').all().map(readEntry),
    append(record, body, changes, oldest) {
      database.exec('BEGIN IMMEDIATE')
      try {
        insertLedger.run(record.sequence, JSON.stringify(record), body)
        for (const { key, after } of changes) {
          if (after) putEntry.run(key, encodeData(after), after.lastModified, after.liveUntil ?? null)
          else removeEntry.run(key)
        }
        let bytes = bodyBytes + body.length
        let left = Number(findOldest.get()?.oldest)
        for (; left < oldest || (bytes > maxBodyBytes && left < record.sequence); left += 1) {
          bytes -= Number(deleteBefore.get(left + 1)?.bytes ?? 0)
        }
        database.exec('COMMIT')
        bodyBytes = bytes
        return left
      } catch (cause) {
        // A COMMIT that failed for lack of space may already have rolled back.
        if (database.isTransaction) database.exec('ROLLBACK')
        throw cause
      }
    },
    read(sequence, [offset, length]) {
      const part = readBody.get(offset + 1, length, sequence)?.part
      if (!(part instanceof Uint8Array) || part.length !== length)
        throw new Error(`ledger ${sequence} does not contain this span`)
      return Buffer.from(part.buffer, part.byteOffset, part.length).toString()
    },
    close: () => {
      if (database.isOpen) database.close()
    },
  }
}

function readEntry(row: Record<string, unknown>): StoredEntry {
  return {
    key: String(row.key),
    data: xdr.LedgerEntryData.fromXdr(String(row.data), 'base64'),
    lastModified: Number(row.last_modified),
    ...(row.live_until === null ? {} : { liveUntil: Number(row.live_until) }),
  }
}
