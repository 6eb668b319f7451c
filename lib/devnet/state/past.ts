import { type Change, openView, type State, type StoredEntry } from './state.ts'

/** The entries as they were some ledgers ago. */
export interface Past {
  /** how many ledgers are remembered */
  depth(): number
  /** The entries as they were `behind` ledgers ago: to read, or to fork. */
  at(behind: number): State
  /** Remembers what a ledger is about to change. */
  note(changes: readonly Change[]): void
}

/** Remembers `most` ledgers. */
export function openPast(state: State, most: number): Past {
  /** for each ledger, newest first, the entries that it changed, as they were before it */
  const found: Map<string, StoredEntry | undefined>[] = []
  return {
    depth: () => found.length,
    at(behind) {
      const since = found.slice(0, behind).reverse()
      return openView((key) => {
        const first = since.find((ledger) => ledger.has(key))
        return first ? first.get(key) : state.get(key)
      })
    },
    note(changes) {
      found.unshift(new Map(changes.map(({ key, before }) => [key, before])))
      if (found.length > most) found.length = most
    },
  }
}
