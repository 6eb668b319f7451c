import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Prover } from '#lib/wallet/prover.ts'

/** What the embedded ledger's verifier takes for a proof. Loaded by name: nothing here depends on that ledger. */
const STAND_IN = './lib/devnet/devnet.ts'

/**
 * The prover of the module that RELAY_PROVER names: a package, or a file (`./…`, `/…`, from the working directory), that
 * exports `prover`. Without a name the local network's stand-in; a real network has none, and needs one.
 * @throws Error that names the variable
 */
export async function loadProver(name: string | undefined, network: 'local' | 'testnet'): Promise<Prover> {
  const wanted = name ?? (network === 'local' ? STAND_IN : undefined)
  if (wanted === undefined) throw new Error('RELAY_PROVER: is needed on a real network')
  const specifier = /^[./]/.test(wanted) ? pathToFileURL(path.resolve(wanted)).href : wanted
  // The bundler must leave this alone: the module is there when the process runs.
  const loaded: unknown = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ specifier)
  if (hasProver(loaded)) return loaded.prover
  throw new Error('RELAY_PROVER: the module exports no prover')
}

function hasProver(module: unknown): module is { prover: Prover } {
  if (typeof module !== 'object' || module === null || !('prover' in module)) return false
  const { prover } = module
  return typeof prover === 'object' && prover !== null && 'prove' in prover && typeof prover.prove === 'function'
}
