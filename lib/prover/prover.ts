import { availableParallelism } from 'node:os'
import { gunzipSync } from 'node:zlib'
import type { InputMap } from '@noir-lang/noir_js'
import { PROOF_BYTES, type Prover, type Statement } from '#lib/wallet/prover.ts'
import { publicInputs } from '#lib/wallet/statement.ts'
import { openBackend } from './backend.ts'
import { type Circuit, ProverFault, readCircuits } from './circuits.ts'
import { type ReferenceString, readReferenceString } from './reference-string.ts'
import { sampleStatements } from './sample.ts'

interface ProverOptions {
  /** Folder of the deployment's circuits and verification keys. */
  circuits: string
  /** Folder of the reference string under which the keys were made. */
  referenceString: string
  /** By default one for each processor, at most eight: more gain nothing. */
  threads?: number
  /** Milliseconds for one proof, 120,000 by default. What takes longer counts as hung. */
  limitMs?: number
}

/** Makes UltraHonk proofs in a worker that is loaded for the first proof. Proofs are made one after the other. */
export interface RealProver extends Prover {
  readonly verificationKeys: NonNullable<Prover['verificationKeys']>
  /**
   * Makes each verification key anew and compares it with the one in the folder, and gives each circuit a true statement
   * to solve. Both take some seconds.
   * @throws ProverFault that names the circuit whose key, bytecode and reference string do not belong together, or which
   *   is not that of the interface
   */
  check(): Promise<void>
  /** Ends the worker, which otherwise keeps the process alive. Later proofs reject. */
  destroy(): Promise<void>
}

/** Reads the folders now; the worker is loaded for the first proof. @throws ProverFault */
export async function openProver(options: ProverOptions): Promise<RealProver> {
  const { threads = Math.min(availableParallelism(), 8), limitMs = 120_000 } = options
  const circuits = await readCircuits(options.circuits)
  await readReferenceString(options.referenceString)
  // The string has 2 MB, and the worker keeps a copy of its own.
  const referenceString = (): Promise<ReferenceString> => readReferenceString(options.referenceString)
  const backend = openBackend({ referenceString, threads, limitMs })

  async function makeKey({ acir }: Circuit): Promise<Uint8Array> {
    return await backend.run((api) => api.acirWriteVkUltraKeccakHonk(acir))
  }

  return {
    verificationKeys: {
      register: circuits.register.key,
      transfer: circuits.transfer.key,
      withdraw: circuits.withdraw.key,
    },
    prove: async (statement) => {
      const circuit = circuits[statement.circuit]
      const inputs = publicInputs(statement)
      const witness = await solve(circuit, inputs, secretsOf(statement))
      const { RawBuffer } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
      return await backend.run(async (api) => {
        const output = await api.acirProveUltraKeccakHonk(circuit.acir, witness)
        const proof = output.subarray(inputs.length)
        const states = proof.length === PROOF_BYTES && Buffer.compare(output.subarray(0, inputs.length), inputs) === 0
        if (states && (await api.acirVerifyUltraKeccakHonk(output, new RawBuffer(circuit.key)))) return proof
        throw mismatch(circuit, options)
      })
    },
    check: async () => {
      const samples = sampleStatements()
      for (const circuit of Object.values<Circuit>(circuits)) {
        if (Buffer.compare(await makeKey(circuit), circuit.key) !== 0) throw mismatch(circuit, options)
        const sample = samples[circuit.name]
        await solve(circuit, publicInputs(sample), secretsOf(sample)).catch((cause) => {
          const reason = 'is for another version of the interface, or takes its public inputs in another order'
          throw new ProverFault(`${circuit.name}.json in ${options.circuits} ${reason}`, { cause })
        })
      }
    },
    destroy: backend.destroy,
  }
}

/** The values of all wires. Rejects when the statement is false, with the assertion that fails. */
async function solve(circuit: Circuit, inputs: Uint8Array, secrets: InputMap): Promise<Uint8Array> {
  const { Noir } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@noir-lang/noir_js')
  const given: InputMap = { ...secrets }
  let offset = 0
  for (const { name, visibility } of circuit.program.abi.parameters) {
    if (visibility !== 'public') continue
    given[name] = `0x${Buffer.from(inputs.subarray(offset, offset + 32)).toString('hex')}`
    offset += 32
  }
  try {
    return gunzipSync((await new Noir(circuit.program).execute(given)).witness)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^Circuit execution failed: /, '') : String(cause)
    throw new ProverFault(`the statement of this ${circuit.name} is false: ${reason}`, { cause })
  }
}

function secretsOf(statement: Statement): InputMap {
  if (!statement.witness) throw new ProverFault('a proof needs the secrets of its statement')
  const sk = decimal(statement.witness.sk)
  if (statement.circuit === 'register') return { sk }
  const { v, r, rE } = statement.witness
  const spending = { sk, v: decimal(v), r: decimal(r), r_e: decimal(rE) }
  return statement.circuit === 'withdraw' ? spending : { ...spending, v_transfer: decimal(statement.witness.vTransfer) }
}

const decimal = (value: bigint): string => value.toString()

function mismatch({ name }: Circuit, { circuits, referenceString }: ProverOptions): ProverFault {
  return new ProverFault(
    `${name}.json, ${name}.vk (both in ${circuits}) and the reference string in ${referenceString} do not belong together`,
  )
}
