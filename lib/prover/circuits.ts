import type { CompiledCircuit } from '@noir-lang/noir_js'
import type { DelegationCircuit, RequiredCircuit, Statement } from '#lib/wallet/prover.ts'
import { publicInputBytes } from '#lib/wallet/statement.ts'
import { ProverError } from './prover-error.ts'

export type CircuitName = Statement['circuit']

/** The private inputs of each circuit, by the names of its parameters. */
const SECRETS = {
  register: ['sk'],
  transfer: ['sk', 'v', 'r', 'v_transfer', 'r_e'],
  withdraw: ['sk', 'v', 'r', 'r_e'],
  set_spender: ['sk', 'v', 'r', 'v_a', 'r_e'],
  spender_transfer: ['sk_op', 'dvk_i', 'v_a', 'r_a', 'v_transfer', 'r_e'],
} as const satisfies Record<CircuitName, readonly string[]>

export const REQUIRED_CIRCUITS = ['register', 'transfer', 'withdraw'] as const satisfies readonly RequiredCircuit[]

/** A deployment may lack them; then it has no delegations. */
export const DELEGATION_CIRCUITS = ['set_spender', 'spender_transfer'] as const satisfies readonly DelegationCircuit[]

export const CIRCUIT_NAMES = [...REQUIRED_CIRCUITS, ...DELEGATION_CIRCUITS] as const

/** The size of a verification key in bytes. */
export const KEY_BYTES = 1_760

/** Field elements that every proof carries in addition to the public inputs; a verification key counts them as well. */
const PAIRING_POINTS = 16

/** A circuit and the key that verifies its proofs. */
export interface Circuit {
  name: CircuitName
  program: CompiledCircuit
  /** The constraints, in the format of the prover. */
  acir: Uint8Array
  key: Uint8Array
}

export type Circuits = Readonly<Record<RequiredCircuit, Circuit> & Partial<Record<DelegationCircuit, Circuit>>>

/** A file's name, for messages, and its content. */
export interface NamedFile {
  name: string
  content: Uint8Array
}

/**
 * A circuit from the output of `nargo compile` and its verification key.
 * @throws ProverError for a file that is damaged, or made for another version of the interface
 */
export async function parseCircuit(name: CircuitName, artifact: NamedFile, key: NamedFile): Promise<Circuit> {
  const file = artifact.name
  const program = parseProgram(file, new TextDecoder().decode(artifact.content))
  const { parameters } = program.abi
  checkPublicInputs(file, name, parameters.filter(({ visibility }) => visibility === 'public').length)
  const secrets = parameters.filter(({ visibility }) => visibility === 'private').map((parameter) => parameter.name)
  const others = parameters.filter((parameter) => !isField(parameter)).map((parameter) => parameter.name)
  if (others.length > 0) {
    throw new ProverError('files-invalid', `${file} has parameters that are not field elements: ${others.join(', ')}`)
  }
  if (secrets.toSorted().join() !== SECRETS[name].toSorted().join()) {
    throw new ProverError(
      'files-invalid',
      `${file} takes the secrets ${secrets.join(', ')} in place of ${SECRETS[name].join(', ')}`,
    )
  }
  return { name, program, acir: await unpackBytecode(file, program.bytecode), key: parseVerificationKey(name, key) }
}

/** The verification key of a circuit. @throws ProverError */
export function parseVerificationKey(name: CircuitName, { name: file, content }: NamedFile): Uint8Array {
  if (content.length !== KEY_BYTES) {
    throw new ProverError('files-invalid', `${file} has ${content.length} bytes; a verification key has ${KEY_BYTES}`)
  }
  const counted = new DataView(content.buffer, content.byteOffset).getBigUint64(16)
  checkPublicInputs(file, name, Number(counted) - PAIRING_POINTS)
  return content
}

/** @throws ProverError */
export function parseProgram(file: string, text: string): CompiledCircuit {
  try {
    const program = JSON.parse(text)
    if (typeof program.bytecode === 'string' && Array.isArray(program.abi.parameters)) return program
  } catch (cause) {
    throw new ProverError('files-invalid', `${file} is not a compiled circuit`, { cause })
  }
  throw new ProverError('files-invalid', `${file} is not a compiled circuit`)
}

/** The constraints of a program. @throws ProverError */
export async function unpackBytecode(file: string, bytecode: string): Promise<Uint8Array> {
  try {
    return await gunzip(Uint8Array.from(atob(bytecode), (char) => char.charCodeAt(0)))
  } catch (cause) {
    throw new ProverError('files-invalid', `the bytecode in ${file} is damaged`, { cause })
  }
}

/** Without node:zlib, so that a browser can load it. */
export async function gunzip(content: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([Uint8Array.from(content)]).stream().pipeThrough(new DecompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

function checkPublicInputs(file: string, name: CircuitName, count: number): void {
  const expected = publicInputBytes(name) / 32
  if (count !== expected) {
    throw new ProverError(
      'files-invalid',
      `${file} is for ${count} public inputs in place of ${expected}: another version of the interface`,
    )
  }
}

const isField = ({ type }: CompiledCircuit['abi']['parameters'][number]): boolean => type.kind === 'field'
