import { homedir } from 'node:os'
import { pathToFileURL } from 'node:url'
import { ConfigurationError, type Environment } from '#lib/config/environment.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import type { RealProver } from '../prover.ts'
import { prover as standIn } from '../stand-in.ts'
import { IGNITION } from '../string-digests.ts'
import { EMBEDDED_CIRCUITS, EMBEDDED_STRING, hasEmbeddedKeys, readEmbeddedString } from './embedded.ts'
import { openProver } from './prover.ts'
import { fetchReferenceString, isComplete, readKnownString, readReferenceString } from './reference-string.ts'

/** The settings of the prover. */
export interface ProverSettings {
  network: 'local' | 'testnet'
  /** The proofs that a local ledger accepts. */
  proofs: Environment['DEVNET_PROOFS']
  /** A package or a file that exports `prover`, in place of the project's own. */
  module: string | undefined
  circuits: string | undefined
  referenceString: string | undefined
  /** the address from which the ceremony's string is fetched, in place of its publisher's */
  referenceSource?: string
  threads: number | undefined
}

/** The configured prover. Only this project's prover has `check` and `destroy`. */
export type LoadedProver = Prover & Partial<Pick<RealProver, 'check' | 'destroy'>>

export function proverSettings(environment: Environment): ProverSettings {
  return {
    network: environment.STELLAR_NETWORK,
    proofs: environment.DEVNET_PROOFS,
    module: environment.RELAY_PROVER,
    circuits: environment.PROVER_CIRCUITS,
    referenceString: environment.PROVER_CRS,
    threads: environment.PROVER_THREADS,
  }
}

/**
 * The prover for the network: its deployment's circuits, and the reference string under which their keys were made. The
 * string of the ceremony is fetched if it is missing. `say` announces slow steps.
 * @throws ConfigurationError that names the variable
 */
export async function loadProver(settings: ProverSettings, say: (line: string) => void): Promise<LoadedProver> {
  if (settings.module !== undefined) return await importProver(settings.module)
  const isLocal = settings.network === 'local'
  if (isLocal && settings.proofs === 'stand-in') return standIn
  const circuits = settings.circuits ?? (isLocal ? EMBEDDED_CIRCUITS : undefined)
  if (circuits === undefined) {
    throw new ConfigurationError('PROVER_CIRCUITS', 'is needed on a real network: the folder of its circuits')
  }
  // Keys are valid under one string only, so the folder decides. The network's name cannot, since other networks use it
  // too.
  const isEmbedded = isLocal && (await blame('PROVER_CIRCUITS', () => hasEmbeddedKeys(circuits)))
  const referenceString = settings.referenceString ?? (isEmbedded ? EMBEDDED_STRING : `${homedir()}/.bb-crs`)
  await blame('PROVER_CRS', async () => {
    if (isLocal && settings.referenceString !== undefined) return void (await readReferenceString(referenceString))
    if (isEmbedded) return void (await readEmbeddedString())
    if (!(await isComplete(referenceString))) {
      say(`The reference string is fetched into ${referenceString}, 2 MB.`)
      await fetchReferenceString(referenceString, settings.referenceSource)
    }
    await readKnownString(referenceString, IGNITION, 'of the ceremony that real networks use')
  })
  const { threads } = settings
  const options = { circuits, referenceString, ...(threads !== undefined && { threads }) }
  return await blame('PROVER_CIRCUITS', () => openProver(options))
}

/**
 * The prover that a module exports: a package, or a file (`./…`, `/…`, from the working directory).
 * @throws ConfigurationError for a module without one
 */
async function importProver(name: string): Promise<Prover> {
  const specifier = /^[./]/.test(name) ? new URL(name, pathToFileURL(`${process.cwd()}/`)).href : name
  // The bundler must not resolve this import: the module is there when the process runs.
  const loaded: unknown = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ specifier)
  if (hasProver(loaded)) return loaded.prover
  throw new ConfigurationError('RELAY_PROVER', 'the module exports no prover')
}

function hasProver(module: unknown): module is { prover: Prover } {
  if (typeof module !== 'object' || module === null || !('prover' in module)) return false
  const { prover } = module
  return typeof prover === 'object' && prover !== null && 'prove' in prover && typeof prover.prove === 'function'
}

/** Runs a step, and turns its errors into a ConfigurationError for `variable`. */
async function blame<T>(variable: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (cause) {
    throw new ConfigurationError(variable, cause instanceof Error ? cause.message : String(cause))
  }
}
