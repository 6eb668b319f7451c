import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dataPath } from '#lib/config/data-directory.ts'
import { readEntry, recordEntry } from './entry-record.ts'
import type { EntryRecord } from './record.ts'
import type { StoredEntry } from './state.ts'

const NAME = /^entries-(\d{10})\.snapshot$/
/** Entries in one write. */
const BATCH = 1000

/**
 * Writes all entries as ledger `sequence` left them, one JSON line each. The file gets its name when it is whole. Older
 * snapshots are deleted then.
 */
export function writeSnapshot(directory: string, sequence: number, entries: Iterable<StoredEntry>): void {
  const path = dataPath(directory, `entries-${String(sequence).padStart(10, '0')}.snapshot`)
  const file = openSync(`${path}.part`, 'w')
  try {
    let lines: string[] = []
    for (const entry of entries) {
      lines.push(`${JSON.stringify(recordEntry(entry))}\n`)
      if (lines.length < BATCH) continue
      writeSync(file, lines.join(''))
      lines = []
    }
    writeSync(file, lines.join(''))
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.part`, path)
  for (const { name, sequence: other } of snapshots(directory)) {
    if (other < sequence) rmSync(dataPath(directory, name), { force: true })
  }
}

/** The newest snapshot, or no entries as of ledger 0. */
export function readSnapshot(directory: string): { sequence: number; entries: StoredEntry[] } {
  const newest = snapshots(directory).toSorted((left, right) => right.sequence - left.sequence)[0]
  if (!newest) return { sequence: 0, entries: [] }
  const lines = readFileSync(dataPath(directory, newest.name), 'utf8').split('\n')
  const records: EntryRecord[] = lines.filter(Boolean).map((line) => JSON.parse(line))
  return { sequence: newest.sequence, entries: records.flatMap((record) => readEntry(record) ?? []) }
}

function snapshots(directory: string): { name: string; sequence: number }[] {
  return readdirSync(directory).flatMap((name) => {
    const sequence = NAME.exec(name)?.[1]
    return sequence === undefined ? [] : [{ name, sequence: Number(sequence) }]
  })
}
