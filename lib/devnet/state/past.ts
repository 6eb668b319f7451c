import { type Change, openView, type State, type StoredEntry } from './state.ts'

/** The entries as of earlier ledgers. */
export interface Past {
  /** how many ledgers are in memory */
  depth(): number
  /** The entries as of `behind` ledgers ago, to read or to fork. */
  at(behind: number): State
  /** Records the entries that a ledger is about to change. */
  note(changes: readonly Change[]): void
}

/** Keeps `most` ledgers. */
export function openPast(state: State, most: number): Past {
  /** for each ledger, newest first, the previous state of the entries that it changed */
  const previous: Map<string, StoredEntry | undefined>[] = []
  return {
    depth: () => previous.length,
    at(behind) {
      const since = previous.slice(0, behind).reverse()
      return openView((key) => {
        const first = since.find((ledger) => ledger.has(key))
        return first ? first.get(key) : state.get(key)
      })
    },
    note(changes) {
      previous.unshift(new Map(changes.map(({ key, before }) => [key, before])))
      if (previous.length > most) previous.length = most
    },
  }
}
