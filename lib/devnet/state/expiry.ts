import { isTemporary } from './entry.ts'
import type { Change, State, StoredEntry } from './state.ts'

/** Temporary entries (mostly used nonces) by their last ledger. */
export interface Expiry {
  note(entry: StoredEntry): void
  follow(changes: readonly Change[]): void
  /** Removes the entries that are no longer live in ledger `sequence`. It may be called twice for a ledger. */
  evict(state: State, sequence: number): void
}

export function openExpiry(): Expiry {
  const due = new Map<number, Set<string>>()
  const note = (entry: StoredEntry) => {
    if (entry.liveUntil === undefined || !isTemporary(entry)) return
    const keys = due.get(entry.liveUntil) ?? new Set()
    due.set(entry.liveUntil, keys.add(entry.key))
  }
  return {
    note,
    follow(changes) {
      for (const { after } of changes) if (after) note(after)
    },
    evict(state, sequence) {
      for (const key of due.get(sequence - 1) ?? []) {
        // An extended entry is also recorded under its new last ledger.
        if (state.get(key)?.liveUntil === sequence - 1) state.remove(key)
      }
      due.delete(sequence - 2)
    },
  }
}
