import { mkdirSync } from 'node:fs'
import { describeFailure, log } from '#lib/observability/log.ts'
import { readEntry } from './entry-record.ts'
import { type Expiry, openExpiry } from './expiry.ts'
import { type History, openHistory } from './history.ts'
import { type Journal, memoryJournal, openJournal, type Place } from './journal.ts'
import type { LedgerHead } from './record.ts'
import { readSnapshot, writeSnapshot } from './snapshot.ts'
import { openState, type State, type StoredEntry } from './state.ts'

/** Everything that a ledger leaves behind, in memory and on disk. */
interface Archive {
  readonly state: State & { entries(): IterableIterator<StoredEntry> }
  readonly history: History
  readonly expiry: Expiry
  /**
   * Makes a closed ledger permanent: first in the journal, then in memory, so that no client sees what a crash could
   * undo. `layer` holds its changes.
   */
  keep(record: { head: LedgerHead; body: Buffer }, layer: State): void
  close(): void
}

/** A segment of the journal ends after so many ledgers or bytes. A snapshot of all entries follows it. */
const SEGMENT_LEDGERS = 1024
const SEGMENT_BYTES = 64 * 1024 * 1024
/** With more segments than this the oldest is deleted early: a busy ledger must not fill the disk. */
const MAX_SEGMENTS = 32

/** Opens what `directory` holds, or an archive in memory for null. No ledger in it means a new network. */
export function openArchive(directory: string | null): Archive {
  if (directory !== null) mkdirSync(directory, { recursive: true })
  const snapshot = directory === null ? { sequence: 0, entries: [] } : readSnapshot(directory)
  const entries = new Map<string, StoredEntry>(snapshot.entries.map((entry) => [entry.key, entry]))
  const replayed: { ledger: LedgerHead['ledger']; place: Place }[] = []

  const replay = ({ ledger, changes }: LedgerHead, place: Place) => {
    replayed.push({ ledger, place })
    if (ledger.sequence <= snapshot.sequence) return
    for (const change of changes) {
      const entry = readEntry(change)
      if (entry) entries.set(entry.key, entry)
      else entries.delete(change[0])
    }
  }
  const journal: Journal = directory === null ? memoryJournal() : openJournal(directory, replay)
  const state = openState(entries.values())
  const history = openHistory(journal)
  const expiry = openExpiry()
  for (const { ledger, place } of replayed) history.add(ledger, place)
  for (const entry of entries.values()) expiry.note(entry)

  /** Deletes segments without a retained ledger. The snapshot holds what their ledgers did to the entries. */
  const dropOldSegments = () => {
    const segments = journal.segments()
    while (segments.length > 1) {
      const [first, second] = segments
      if (first === undefined || second === undefined) return
      if (segments.length > MAX_SEGMENTS) history.forget(second)
      if (history.oldest().sequence < second) return
      journal.drop(first)
      segments.shift()
    }
  }

  return {
    state,
    history,
    expiry,
    keep({ head, body }, layer) {
      const place = journal.append(head, body)
      expiry.follow(layer.changes())
      layer.commit()
      // A snapshot reads the root's entries, which have the changes only now.
      state.commit()
      history.add(head.ledger, place)
      const { sequence } = head.ledger
      if (sequence - place.segment + 1 < SEGMENT_LEDGERS && journal.segmentBytes() < SEGMENT_BYTES) return
      // The ledger stands even if this fails: segments stay until a snapshot succeeds. The segment reaches the disk
      // first, because a power cut must not leave a snapshot of ledgers that the journal has lost.
      try {
        journal.roll(sequence + 1)
        if (directory !== null) writeSnapshot(directory, sequence, state.entries())
        dropOldSegments()
      } catch (error) {
        log('error', 'ledger snapshot', { sequence, failure: describeFailure(error) })
      }
    },
    close: () => journal.close(),
  }
}
