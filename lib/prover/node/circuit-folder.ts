import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { VerificationKeys } from '#lib/wallet/prover.ts'
import {
  type Circuit,
  type CircuitName,
  type Circuits,
  DELEGATION_CIRCUITS,
  type NamedFile,
  parseCircuit,
  parseVerificationKey,
  REQUIRED_CIRCUITS,
} from '../circuits.ts'
import { ProverError } from '../prover-error.ts'

/** The files of a circuit, relative to the folder. */
interface Layout {
  artifact(name: CircuitName): string
  key(name: CircuitName): string
}

/** `register.json` and `register.vk` side by side. */
const FLAT: Layout = { artifact: (name) => `${name}.json`, key: (name) => `${name}.vk` }

/** The folder of the published circuit sources after `nargo compile`, whose keys are published in `vks`. */
const COMPILED: Layout = { artifact: (name) => `target/circuit_${name}.json`, key: (name) => `vks/${name}.vk.bin` }

/**
 * Reads the circuits of a deployment from a folder in either layout. Those of delegations may be missing.
 * @throws ProverError for a file that is missing, damaged, or made for another version of the interface
 */
export async function readCircuits(folder: string): Promise<Circuits> {
  const layout = layoutOf(folder)
  const read = async (name: CircuitName) => {
    const artifact = await readFileOrExplain(`${folder}/${layout.artifact(name)}`)
    return await parseCircuit(name, artifact, await readFileOrExplain(`${folder}/${layout.key(name)}`))
  }
  return await readEach<Circuit, Circuits>(folder, layout, read)
}

/** The verification keys of a folder in either layout. @throws ProverError */
export async function readVerificationKeys(folder: string): Promise<VerificationKeys> {
  const layout = layoutOf(folder)
  const read = async (name: CircuitName) =>
    parseVerificationKey(name, await readFileOrExplain(`${folder}/${layout.key(name)}`))
  return await readEach<Uint8Array, VerificationKeys>(folder, layout, read)
}

/** Reads something of every circuit that the folder has. */
async function readEach<Part, All extends Partial<Record<CircuitName, Part>>>(
  folder: string,
  layout: Layout,
  read: (name: CircuitName) => Promise<Part>,
): Promise<All> {
  const optional = DELEGATION_CIRCUITS.filter((name) => existsSync(`${folder}/${layout.key(name)}`))
  const parts = [...REQUIRED_CIRCUITS, ...optional].map(async (name) => [name, await read(name)])
  return Object.fromEntries(await Promise.all(parts))
}

/** @throws ProverError */
export async function readFileOrExplain(name: string): Promise<NamedFile & { content: Buffer }> {
  try {
    return { name, content: await readFile(name) }
  } catch (cause) {
    throw new ProverError('files-invalid', `${name} cannot be read`, { cause })
  }
}

function layoutOf(folder: string): Layout {
  return existsSync(`${folder}/vks`) ? COMPILED : FLAT
}
