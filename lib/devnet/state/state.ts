import type { xdr } from '@stellar/stellar-sdk'

/** One ledger entry. `data` is immutable: a write replaces the entry. */
export interface StoredEntry {
  /** base64 XDR of the LedgerKey */
  readonly key: string
  readonly data: xdr.LedgerEntryData
  /** sequence of the ledger that last wrote the entry */
  readonly lastModified: number
  /** last ledger in which a contract data or code entry is live; classic entries have none */
  readonly liveUntil?: number
}

/** The change of one entry in a layer. A new entry has no `before`, a removed one no `after`. */
export interface Change {
  readonly key: string
  readonly before: StoredEntry | undefined
  readonly after: StoredEntry | undefined
}

/**
 * The ledger's entries, in layers. Writes stay in their layer until `commit` passes them to the parent, so a failed
 * transaction, a failed contract call or a simulation is undone by dropping its layer.
 */
export interface State {
  get(key: string): StoredEntry | undefined
  put(entry: StoredEntry): void
  remove(key: string): void
  /** A layer above this one. */
  fork(): State
  /** Passes this layer's writes to its parent and empties the layer. */
  commit(): void
  /** Every key written in this layer since its creation or last commit, in order of first write. */
  changes(): Change[]
}

export function openState(entries: Iterable<StoredEntry> = []): State & { entries(): IterableIterator<StoredEntry> } {
  const root = new Map<string, StoredEntry>()
  for (const entry of entries) root.set(entry.key, entry)
  return {
    ...layer(
      (key) => root.get(key),
      (changes) => {
        for (const { key, after } of changes) {
          if (after) root.set(key, after)
          else root.delete(key)
        }
      },
    ),
    entries: () => root.values(),
  }
}

/** A layer above entries that are read through a function; its writes are never passed down. */
export function openView(read: (key: string) => StoredEntry | undefined): State {
  return layer(read, () => {})
}

function layer(read: (key: string) => StoredEntry | undefined, write: (changes: Change[]) => void): State {
  const written = new Map<string, StoredEntry | undefined>()
  const get = (key: string) => (written.has(key) ? written.get(key) : read(key))
  const changes = () => Array.from(written, ([key, after]) => ({ key, before: read(key), after }))
  return {
    get,
    put: (entry) => void written.set(entry.key, entry),
    remove: (key) => void written.set(key, undefined),
    fork: () =>
      layer(get, (below) => {
        for (const { key, after } of below) written.set(key, after)
      }),
    commit: () => {
      write(changes())
      written.clear()
    },
    changes,
  }
}

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
