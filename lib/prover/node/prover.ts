import { availableParallelism } from 'node:os'
import { openBackend } from '../backend.ts'
import { createProver, type RealProver } from '../prover.ts'
import { readCircuits } from './circuit-folder.ts'
import { readReferenceString } from './reference-string.ts'
import { watchWorker } from './worker.ts'

interface ProverOptions {
  /** Folder of the deployment's circuits and verification keys. */
  circuits: string
  /** Folder of the reference string under which the keys were made. */
  referenceString: string
  /** By default one per processor, at most eight: more gain nothing. */
  threads?: number
  /** A proof that takes longer counts as hung; 120,000 by default. */
  limitMs?: number
}

/** Opens the prover for a folder of circuits. Reads the folders immediately. @throws ProverError */
export async function openProver(options: ProverOptions): Promise<RealProver> {
  const { threads = Math.min(availableParallelism(), 8), limitMs = 120_000 } = options
  const circuits = await readCircuits(options.circuits)
  await readReferenceString(options.referenceString)
  // The string is 2 MB, and the worker keeps a separate copy.
  const referenceString = () => readReferenceString(options.referenceString)
  return createProver({
    circuits,
    backend: openBackend({ referenceString, threads, limitMs, watchWorker }),
    source: options.circuits,
    explainMismatch: (name) =>
      `the circuit ${name} and its key (both in ${options.circuits}) and the reference string in ` +
      `${options.referenceString} do not belong together`,
  })
}
