import { equalBytes } from '@noble/curves/utils.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import type { InputMap } from '@noir-lang/noir_js'
import { PROOF_BYTES, type Prover, type Statement } from '#lib/wallet/prover.ts'
import { publicInputs } from '#lib/wallet/statement.ts'
import type { Backend } from './backend.ts'
import { type Circuit, type Circuits, gunzip } from './circuits.ts'
import { ProverError } from './prover-error.ts'
import { sampleStatements } from './sample.ts'

/** Generates UltraHonk proofs, one at a time, in a worker that is loaded for the first proof. */
export interface RealProver extends Prover {
  readonly verificationKeys: NonNullable<Prover['verificationKeys']>
  /**
   * Generates each verification key and compares it with the given one, and solves each circuit for a true statement.
   * Takes some seconds.
   * @throws ProverError that names the circuit whose key, bytecode and reference string don't match, or whose circuit
   *   isn't that of the interface
   */
  check(): Promise<void>
  /** Ends the worker, which otherwise keeps the process alive. Later proofs reject. */
  destroy(): Promise<void>
}

interface ProverParts {
  circuits: Circuits
  backend: Backend
  /** Where the circuits are, for messages. */
  source: string
  /** The message for a circuit whose files and reference string do not belong together. */
  explainMismatch(circuit: Circuit['name']): string
}

/** The prover for these circuits. */
export function createProver({ circuits, backend, source, explainMismatch }: ProverParts): RealProver {
  const mismatch = ({ name }: Circuit) => new ProverError('files-invalid', explainMismatch(name))
  return {
    verificationKeys: {
      register: circuits.register.key,
      transfer: circuits.transfer.key,
      withdraw: circuits.withdraw.key,
      ...(circuits.set_spender && { set_spender: circuits.set_spender.key }),
      ...(circuits.spender_transfer && { spender_transfer: circuits.spender_transfer.key }),
    },
    prove: async (statement) => {
      const circuit = circuits[statement.circuit]
      if (!circuit) throw new ProverError('files-invalid', `${source} has no circuit ${statement.circuit}`)
      const inputs = publicInputs(statement)
      const witness = await solve(circuit, statement)
      const { RawBuffer } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
      return await backend.run(async (api) => {
        const output = await api.acirProveUltraKeccakHonk(circuit.acir, witness)
        const proof = output.subarray(inputs.length)
        const matches = proof.length === PROOF_BYTES && equalBytes(output.subarray(0, inputs.length), inputs)
        if (matches && (await api.acirVerifyUltraKeccakHonk(output, new RawBuffer(circuit.key)))) return proof
        throw mismatch(circuit)
      })
    },
    check: async () => {
      const samples = sampleStatements()
      for (const circuit of Object.values<Circuit>(circuits)) {
        const key = await backend.run((api) => api.acirWriteVkUltraKeccakHonk(circuit.acir))
        if (!equalBytes(key, circuit.key)) throw mismatch(circuit)
        await solve(circuit, samples[circuit.name]).catch((cause) => {
          const reason = 'is for another version of the interface, or takes its public inputs in another order'
          throw new ProverError('files-invalid', `the circuit ${circuit.name} in ${source} ${reason}`, { cause })
        })
      }
    },
    destroy: backend.destroy,
  }
}

/** The values of all wires. Rejects with the failing assertion if the statement is false. */
async function solve(circuit: Circuit, statement: Statement): Promise<Uint8Array> {
  const { Noir } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@noir-lang/noir_js')
  const inputs = circuitInputs(circuit, statement)
  try {
    return await gunzip((await new Noir(circuit.program).execute(inputs)).witness)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^Circuit execution failed: /, '') : String(cause)
    throw new ProverError('statement-invalid', `the statement of this ${circuit.name} is false: ${reason}`, { cause })
  }
}

/** The inputs of a circuit by the names of its parameters: the public ones in their order, and the secrets. */
export function circuitInputs(circuit: Circuit, statement: Statement): InputMap {
  const words = publicInputs(statement)
  const inputs: InputMap = secretsOf(statement)
  let offset = 0
  for (const { name, visibility } of circuit.program.abi.parameters) {
    if (visibility !== 'public') continue
    inputs[name] = `0x${bytesToHex(words.subarray(offset, offset + 32))}`
    offset += 32
  }
  return inputs
}

function secretsOf(statement: Statement): InputMap {
  if (!statement.witness) throw new ProverError('statement-invalid', 'a proof needs the secrets of its statement')
  const sk = decimal(statement.witness.sk)
  if (statement.circuit === 'register') return { sk }
  if (statement.circuit === 'spender_transfer') {
    const { dvk, vA, rA, vTransfer, rE } = statement.witness
    const allowance = { dvk_i: decimal(dvk), v_a: decimal(vA), r_a: decimal(rA) }
    return { sk_op: sk, ...allowance, v_transfer: decimal(vTransfer), r_e: decimal(rE) }
  }
  const { v, r, rE } = statement.witness
  const payment = { sk, v: decimal(v), r: decimal(r), r_e: decimal(rE) }
  if (statement.circuit === 'withdraw') return payment
  if (statement.circuit === 'set_spender') return { ...payment, v_a: decimal(statement.witness.vA) }
  return { ...payment, v_transfer: decimal(statement.witness.vTransfer) }
}

const decimal = (value: bigint): string => value.toString()
