import { openBackend, type ReferenceString } from '#lib/prover/backend.ts'
import { CIRCUIT_NAMES, type CircuitName, type Circuits, type NamedFile, parseCircuit } from '#lib/prover/circuits.ts'
import { createProver, type RealProver } from '#lib/prover/prover.ts'
import { loadCircuit } from './assets.js'
import { decodeAsset, defaultThreads, loadEmbeddedString } from './embedded-string.ts'

export type { ReferenceString } from '#lib/prover/backend.ts'
export type { CircuitName } from '#lib/prover/circuits.ts'
export { fetchIgnition } from '#lib/prover/ignition.ts'
export { announceProofs } from '#lib/prover/progress.ts'
export type { RealProver } from '#lib/prover/prover.ts'
export { ProverError } from '#lib/prover/prover-error.ts'

/** A compiled circuit (`nargo compile`, JSON) and its verification key (1,760 bytes). */
export interface CircuitFiles {
  artifact: Uint8Array
  key: Uint8Array
}

export interface ProverOptions {
  /** The deployment's circuits; those of the embedded ledger by default. The circuits of delegations may be missing. */
  circuits?: Partial<Record<CircuitName, CircuitFiles>>
  /**
   * The string under which the keys were made: `fetchIgnition` on real networks. By default that of the embedded ledger,
   * whose secret is public.
   */
  referenceString?: () => Promise<ReferenceString>
  /** By default one per processor, at most eight; in a page that is not cross-origin isolated one. */
  threads?: number
  /** Milliseconds after which a proof counts as hung; 120,000 by default. */
  limitMs?: number
}

/**
 * Opens a prover in Node or in a browser. bb.js and the circuits are loaded for the first proof, and proofs are generated
 * in a worker of bb.js. Witnesses are solved in the calling thread, which may be a worker of the page.
 * @throws ProverError
 */
export async function openProver(options: ProverOptions = {}): Promise<RealProver> {
  const { circuits = await loadEmbedded(), referenceString = loadEmbeddedString, limitMs = 120_000 } = options
  const parts = Object.entries(circuits).map(async ([name, { artifact, key }]) => {
    const circuit = name as CircuitName
    return [name, await parseCircuit(circuit, file(`${name}.json`, artifact), file(`${name}.vk`, key))] as const
  })
  return createProver({
    circuits: Object.fromEntries(await Promise.all(parts)) as unknown as Circuits,
    backend: openBackend({ referenceString, threads: options.threads ?? defaultThreads(), limitMs }),
    source: 'these files',
    explainMismatch: (name) => `the circuit ${name}, its key and the reference string do not belong together`,
  })
}

const file = (name: string, content: Uint8Array): NamedFile => ({ name, content })

async function loadEmbedded(): Promise<Record<CircuitName, CircuitFiles>> {
  const parts = CIRCUIT_NAMES.map(async (name) => {
    const { artifact, key } = await loadCircuit(name)
    return [name, { artifact: new TextEncoder().encode(artifact), key: decodeAsset(key) }] as const
  })
  return Object.fromEntries(await Promise.all(parts)) as Record<CircuitName, CircuitFiles>
}
