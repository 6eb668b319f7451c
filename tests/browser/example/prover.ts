import { Barretenberg, RawBuffer } from '@aztec/bb.js'
import startSolver from '@noir-lang/acvm_js'
import solverUrl from '@noir-lang/acvm_js/web/acvm_js_bg.wasm?url'
import { type CompiledCircuit, type InputMap, Noir } from '@noir-lang/noir_js'
import startAbi from '@noir-lang/noirc_abi'
import abiUrl from '@noir-lang/noirc_abi/web/noirc_abi_wasm_bg.wasm?url'
import registerUrl from '#lib/prover/circuits/register.json?url'
import transferUrl from '#lib/prover/circuits/transfer.json?url'
import g1Url from '#lib/prover/reference-string/bn254_g1.dat?url'
import g2Url from '#lib/prover/reference-string/bn254_g2.dat?url'
import type { Prover, Statement } from '#lib/wallet/prover.ts'
import { publicInputs } from '#lib/wallet/statement.ts'

/** A WebAssembly prover. With a single thread, the page needs no cross-origin headers. */
export async function openBrowserProver(): Promise<Prover & { destroy(): Promise<void> }> {
  await Promise.all([startSolver({ module_or_path: solverUrl }), startAbi({ module_or_path: abiUrl })])
  const [register, transfer] = await Promise.all([registerUrl, transferUrl].map(fetchCircuit))
  const [g1, g2] = await Promise.all([g1Url, g2Url].map(fetchBytes))
  if (!register || !transfer || !g1 || !g2) throw new Error('a circuit or reference string file is missing')
  const api = await Barretenberg.new({ threads: 1 })
  await api.srsInitSrs(new RawBuffer(g1), g1.length / 64, new RawBuffer(g2))
  return {
    prove: async (statement) => {
      const circuit = statement.circuit === 'register' ? register : transfer
      const inputs = publicInputs(statement)
      const { witness } = await new Noir(circuit).execute({ ...named(circuit, inputs), ...secretsOf(statement) })
      const constraints = await unpack(Uint8Array.from(atob(circuit.bytecode), (char) => char.charCodeAt(0)))
      const output = await api.acirProveUltraKeccakHonk(constraints, await unpack(witness))
      return output.subarray(inputs.length)
    },
    destroy: () => api.destroy(),
  }
}

/** Maps the public inputs, in order, to their names in the circuit. */
function named({ abi }: CompiledCircuit, inputs: Uint8Array): InputMap {
  const names = abi.parameters.filter(({ visibility }) => visibility === 'public').map(({ name }) => name)
  return Object.fromEntries(
    names.map((name, at) => [name, `0x${Buffer.from(inputs.subarray(32 * at, 32 * at + 32)).toString('hex')}`]),
  )
}

function secretsOf(statement: Statement): InputMap {
  if (!statement.witness) throw new Error('the statement has no witness')
  if (statement.circuit === 'register') return { sk: `${statement.witness.sk}` }
  if (statement.circuit !== 'transfer') throw new Error(`this page does not support ${statement.circuit}`)
  const { sk, v, r, vTransfer, rE } = statement.witness
  return { sk: `${sk}`, v: `${v}`, r: `${r}`, v_transfer: `${vTransfer}`, r_e: `${rE}` }
}

async function fetchBytes(url: string): Promise<Uint8Array> {
  return new Uint8Array(await (await fetch(url)).arrayBuffer())
}

async function fetchCircuit(url: string): Promise<CompiledCircuit> {
  return (await fetch(url)).json()
}

async function unpack(bytes: Uint8Array<ArrayBuffer> | Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
