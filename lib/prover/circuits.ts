import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import type { CompiledCircuit } from '@noir-lang/noir_js'
import type { Statement } from '#lib/wallet/prover.ts'
import { publicInputBytes } from '#lib/wallet/statement.ts'

export type CircuitName = Statement['circuit']

/** The secrets that each circuit takes, by the names of its parameters. */
const SECRETS = {
  register: ['sk'],
  transfer: ['sk', 'v', 'r', 'v_transfer', 'r_e'],
  withdraw: ['sk', 'v', 'r', 'r_e'],
} as const satisfies Record<CircuitName, readonly string[]>

export const CIRCUIT_NAMES = ['register', 'transfer', 'withdraw'] as const satisfies readonly CircuitName[]

/** Bytes of a verification key. */
export const KEY_BYTES = 1_760

/** Field elements that every proof carries beside the public inputs; the key counts them, too. */
const PAIRING_POINTS = 16

/** A circuit with the key that verifies its proofs. */
export interface Circuit {
  name: CircuitName
  program: CompiledCircuit
  /** The constraints, as the prover takes them. */
  acir: Uint8Array
  key: Uint8Array
}

type Circuits = Readonly<Record<CircuitName, Circuit>>

/** A proof that cannot be made, or a file that cannot be used. The message names the reason, and holds no secret. */
export class ProverFault extends Error {
  override name = 'ProverFault'
}

/**
 * Reads the circuits of a deployment, `register`, `transfer` and `withdraw`: for each `<name>.json`, as nargo compiles
 * it, and `<name>.vk`, its verification key.
 * @throws ProverFault for a file that is missing, damaged, or made for another version of the interface
 */
export async function readCircuits(folder: string): Promise<Circuits> {
  const [register, transfer, withdraw] = await Promise.all([
    readCircuit(folder, 'register'),
    readCircuit(folder, 'transfer'),
    readCircuit(folder, 'withdraw'),
  ])
  return { register, transfer, withdraw }
}

/** The verification key of a circuit from a folder. @throws ProverFault */
export async function readVerificationKey(folder: string, name: CircuitName): Promise<Uint8Array> {
  const file = `${folder}/${name}.vk`
  const key = await readOrExplain(file)
  const counted = key.length === KEY_BYTES ? Number(key.readBigUInt64BE(16)) - PAIRING_POINTS : undefined
  if (counted === undefined)
    throw new ProverFault(`${file} has ${key.length} bytes; a verification key has ${KEY_BYTES}`)
  checkPublicInputs(file, name, counted)
  return key
}

/** The file's bytes. @throws ProverFault */
export async function readOrExplain(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new ProverFault(`${file} cannot be read`, { cause })
  }
}

async function readCircuit(folder: string, name: CircuitName): Promise<Circuit> {
  const file = `${folder}/${name}.json`
  const program = parseProgram(file, (await readOrExplain(file)).toString())
  const { parameters } = program.abi
  checkPublicInputs(file, name, parameters.filter(({ visibility }) => visibility === 'public').length)
  const secrets = parameters.filter(({ visibility }) => visibility === 'private').map((parameter) => parameter.name)
  const other = parameters.filter((parameter) => !isField(parameter)).map((parameter) => parameter.name)
  if (other.length > 0)
    throw new ProverFault(`${file} takes parameters that are no field elements: ${other.join(', ')}`)
  if (secrets.toSorted().join() !== SECRETS[name].toSorted().join()) {
    throw new ProverFault(`${file} takes the secrets ${secrets.join(', ')} in place of ${SECRETS[name].join(', ')}`)
  }
  return { name, program, acir: unpack(file, program.bytecode), key: await readVerificationKey(folder, name) }
}

function parseProgram(file: string, text: string): CompiledCircuit {
  try {
    const program = JSON.parse(text)
    if (typeof program.bytecode === 'string' && Array.isArray(program.abi.parameters)) return program
  } catch (cause) {
    throw new ProverFault(`${file} is no compiled circuit`, { cause })
  }
  throw new ProverFault(`${file} is no compiled circuit`)
}

function unpack(file: string, bytecode: string): Uint8Array {
  try {
    return gunzipSync(Buffer.from(bytecode, 'base64'))
  } catch (cause) {
    throw new ProverFault(`the bytecode in ${file} is damaged`, { cause })
  }
}

function checkPublicInputs(file: string, name: CircuitName, count: number): void {
  const wanted = publicInputBytes(name) / 32
  if (count !== wanted) {
    throw new ProverFault(
      `${file} is for ${count} public inputs in place of ${wanted}: another version of the interface`,
    )
  }
}

const isField = ({ type }: CompiledCircuit['abi']['parameters'][number]): boolean => type.kind === 'field'
