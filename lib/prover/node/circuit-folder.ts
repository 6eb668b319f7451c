import { access, readFile } from 'node:fs/promises'
import {
  CIRCUIT_NAMES,
  type CircuitName,
  type Circuits,
  type NamedFile,
  ProverFault,
  parseCircuit,
  parseVerificationKey,
} from '../circuits.ts'

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
 * Reads the circuits of a deployment from a folder in either layout.
 * @throws ProverFault for a file that is missing, damaged, or made for another version of the interface
 */
export async function readCircuits(folder: string): Promise<Circuits> {
  const layout = await layoutOf(folder)
  const read = async (name: CircuitName) => {
    const artifact = await readFileOrExplain(`${folder}/${layout.artifact(name)}`)
    return await parseCircuit(name, artifact, await readFileOrExplain(`${folder}/${layout.key(name)}`))
  }
  const [register, transfer, withdraw] = await Promise.all([read('register'), read('transfer'), read('withdraw')])
  return { register, transfer, withdraw }
}

/** The verification keys of a folder in either layout. @throws ProverFault */
export async function readVerificationKeys(folder: string): Promise<Readonly<Record<CircuitName, Uint8Array>>> {
  const layout = await layoutOf(folder)
  const read = async (name: CircuitName): Promise<[CircuitName, Uint8Array]> => {
    return [name, parseVerificationKey(name, await readFileOrExplain(`${folder}/${layout.key(name)}`))]
  }
  return Object.fromEntries(await Promise.all(CIRCUIT_NAMES.map(read))) as Record<CircuitName, Uint8Array>
}

/** @throws ProverFault */
export async function readFileOrExplain(name: string): Promise<NamedFile & { content: Buffer }> {
  try {
    return { name, content: await readFile(name) }
  } catch (cause) {
    throw new ProverFault(`${name} cannot be read`, { cause })
  }
}

async function layoutOf(folder: string): Promise<Layout> {
  try {
    await access(`${folder}/vks`)
    return COMPILED
  } catch {
    return FLAT
  }
}
