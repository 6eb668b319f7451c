import type { xdr } from '@stellar/stellar-sdk'
import type { Envelope } from './envelope.ts'
import type { LedgerLimits } from './ledger-room.ts'

/** Transactions with a common entry that at least one of them writes: they run sequentially. */
interface Cluster {
  readonly envelopes: readonly Envelope[]
  readonly instructions: number
  readonly reads: ReadonlySet<string>
  readonly writes: ReadonlySet<string>
}

/** One stage of a ledger. Its clusters share no entry and run in parallel (CAP-63). */
export interface Stage {
  /** Returns false, and changes nothing, if the transaction doesn't fit. */
  add(envelope: Envelope): boolean
  /** The transactions by thread. */
  threads(): Envelope[][]
}

/** A stage of a ledger with `stages` stages, which share the ledger's instructions. */
export function openStage({ soroban, clusters: width }: LedgerLimits, stages: number): Stage {
  const limit = Math.floor(soroban.instructions / stages)
  let clusters: Cluster[] = []
  return {
    add(envelope) {
      const one = clusterOf(envelope)
      const merged = clusters.filter((cluster) => conflict(cluster, one)).reduce(merge, one)
      if (merged.instructions > limit) return false
      const next = [...clusters.filter((cluster) => !conflict(cluster, one)), merged]
      if (!pack(next, limit, width)) return false
      clusters = next
      return true
    },
    threads: () => (pack(clusters, limit, width) ?? []).map((thread) => thread.flatMap(({ envelopes }) => envelopes)),
  }
}

/** Packs clusters like core: first fit, the largest first; undefined if the threads have no room. */
function pack(clusters: readonly Cluster[], limit: number, width: number): Cluster[][] | undefined {
  const threads = Array.from({ length: width }, () => ({ clusters: [] as Cluster[], instructions: 0 }))
  for (const cluster of clusters.toSorted((left, right) => right.instructions - left.instructions)) {
    const thread = threads.find(({ instructions }) => instructions + cluster.instructions <= limit)
    if (!thread) return undefined
    thread.clusters.push(cluster)
    thread.instructions += cluster.instructions
  }
  return threads.map((thread) => thread.clusters).filter((thread) => thread.length > 0)
}

const keys = new WeakMap<Envelope, Cluster>()

function clusterOf(envelope: Envelope): Cluster {
  const cached = keys.get(envelope)
  if (cached) return cached
  const resources = envelope.inner.soroban?.resources
  const names = (entries: readonly xdr.LedgerKey[] = []) => new Set(entries.map((key) => key.toXdr('base64')))
  const cluster = {
    envelopes: [envelope],
    instructions: resources?.instructions ?? 0,
    reads: names(resources?.footprint.readOnly),
    writes: names(resources?.footprint.readWrite),
  }
  keys.set(envelope, cluster)
  return cluster
}

function conflict(left: Cluster, right: Cluster): boolean {
  return shares(left.writes, right.writes) || shares(left.writes, right.reads) || shares(left.reads, right.writes)
}

function shares(left: ReadonlySet<string>, right: ReadonlySet<string>): boolean {
  for (const key of left) if (right.has(key)) return true
  return false
}

function merge(left: Cluster, right: Cluster): Cluster {
  return {
    envelopes: [...left.envelopes, ...right.envelopes],
    instructions: left.instructions + right.instructions,
    reads: new Set([...left.reads, ...right.reads]),
    writes: new Set([...left.writes, ...right.writes]),
  }
}
