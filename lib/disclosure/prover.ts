import { equalBytes } from '@noble/curves/utils.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import type { CompiledCircuit, InputMap } from '@noir-lang/noir_js'
import type { Backend } from '#lib/prover/backend.ts'
import { gunzip, type NamedFile, parseProgram, unpackBytecode } from '#lib/prover/circuits.ts'
import type { DisclosureCircuit, DisclosureCircuitName } from '#lib/prover/disclosure-circuits.ts'
import { type KeySet, type KeySetName, parseKeySet } from '#lib/prover/key-set.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import { ZK_PROOF_BYTES } from './bundle.ts'
import { DisclosureError } from './disclosure-error.ts'

/** The committed circuits and keys: a browser fetches them, Node reads them from disk. */
export interface DisclosureFiles {
  readCircuit(name: DisclosureCircuitName): Promise<NamedFile>
  readKeySet(name: KeySetName): Promise<Uint8Array>
}

/** The private inputs of a circuit, by the names of its parameters. */
export type Secrets = Readonly<Record<string, bigint | readonly bigint[]>>

/** Generates proofs with zero knowledge, one at a time. */
export interface DisclosureProver {
  /**
   * @param inputs the public inputs, 32 bytes each
   * @throws DisclosureError `not-true` for a false statement; ProverError
   */
  prove(circuit: DisclosureCircuit, inputs: Uint8Array, secrets: Secrets): Promise<Uint8Array>
}

/** @param backend loaded with the reference string of the set */
export function createDisclosureProver(given: {
  files: DisclosureFiles
  backend: Backend
  keySet: KeySetName
}): DisclosureProver {
  const { files, backend, keySet } = given
  return {
    prove: async (circuit, inputs, secrets) => {
      const { name } = circuit
      const key = keyOf(parseKeySet(keySet, await files.readKeySet(keySet)), circuit)
      const file = await files.readCircuit(name)
      const program = parseProgram(file.name, new TextDecoder().decode(file.content))
      const acir = await unpackBytecode(file.name, program.bytecode)
      const witness = await solve(program, inputs, secrets)
      const { RawBuffer } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
      return await backend.run(async (api) => {
        const output = await api.acirProveUltraKeccakZKHonk(acir, witness)
        const proof = new Uint8Array(output.subarray(inputs.length))
        const isOwn = proof.length === ZK_PROOF_BYTES && equalBytes(output.subarray(0, inputs.length), inputs)
        if (isOwn && (await api.acirVerifyUltraKeccakZKHonk(output, new RawBuffer(key)))) return proof
        const reason = `the circuit ${name}, its key and the reference string do not belong together`
        throw new ProverError('files-invalid', reason)
      })
    },
  }
}

/** The pinned verification key of a circuit. */
export function keyOf({ keys }: KeySet, { name }: DisclosureCircuit): Uint8Array {
  const key = keys.get(name)
  if (!key) throw new ProverError('files-invalid', `there is no verification key of ${name}`)
  return key
}

/** The values of all wires. @throws DisclosureError `not-true` with the assertion that fails */
export async function solve(program: CompiledCircuit, inputs: Uint8Array, secrets: Secrets): Promise<Uint8Array> {
  const { Noir } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@noir-lang/noir_js')
  try {
    return await gunzip((await new Noir(program).execute(circuitInputs(program, inputs, secrets))).witness)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^Circuit execution failed: /, '') : String(cause)
    throw new DisclosureError('not-true', `the statement is false: ${reason}`, { cause })
  }
}

type InputValue = InputMap[string]

/** The inputs by the names of the circuit's parameters: the public ones take their words in order. */
function circuitInputs({ abi }: CompiledCircuit, inputs: Uint8Array, secrets: Secrets): InputMap {
  let at = 0
  const take = (type: CompiledCircuit['abi']['parameters'][number]['type']): InputValue => {
    if (type.kind === 'array') return Array.from({ length: type.length }, () => take(type.type))
    at += 32
    return `0x${bytesToHex(inputs.subarray(at - 32, at))}`
  }
  const secretOf = (name: string): InputValue => {
    const secret = secrets[name]
    if (secret === undefined) throw new Error(`the secret ${name} is missing`)
    return typeof secret === 'bigint' ? secret.toString() : secret.map(String)
  }
  const values = abi.parameters.map(({ name, type, visibility }): [string, InputValue] => [
    name,
    visibility === 'public' ? take(type) : secretOf(name),
  ])
  if (at !== inputs.length) throw new Error('the circuit has another number of public inputs')
  return Object.fromEntries(values)
}
