import type { BarretenbergSync } from '@aztec/bb.js'
import { PROOF_BYTES } from '#lib/wallet/prover.ts'
import { PUBLIC_INPUT_BYTES } from '#lib/wallet/statement.ts'
import { type CircuitName, KEY_BYTES, ProverFault } from './circuits.ts'

/**
 * Whether a proof holds for these public inputs. A malformed proof does not.
 * @throws ProverFault when the verifier itself fails; it must not be asked again
 */
export type Verify = (circuit: CircuitName, publicInputs: Uint8Array, proof: Uint8Array, key: Uint8Array) => boolean

/**
 * Loads a verifier that answers at once, in this thread: some 50 MB, half a second. Checking needs the generator and
 * the G2 point of the reference string, 192 bytes, and no file.
 */
export async function loadVerifier(string: { g1: Uint8Array; g2: Uint8Array }): Promise<Verify> {
  const bb = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
  const { RawBuffer } = bb
  // bb.js offers one instance for the whole process, and one that has failed must be replaced.
  const { new: open } = bb.BarretenbergSync as unknown as { new: () => Promise<BarretenbergSync> }
  const api = await open()
  api.srsInitSrs(new RawBuffer(string.g1.subarray(0, 64)), 1, new RawBuffer(string.g2))
  const wasm = api.getWasm()
  return (circuit, publicInputs, proof, key) => {
    if (publicInputs.length !== PUBLIC_INPUT_BYTES[circuit] || proof.length !== PROOF_BYTES) return false
    if (key.length !== KEY_BYTES || !hasPlainEnd(proof)) return false
    const statement = Buffer.concat([lengthOf(publicInputs, proof), publicInputs, proof])
    try {
      // The synchronous class lacks the typed method.
      const [[holds] = []] = wasm.callWasmExport('acir_verify_ultra_keccak_honk', [statement, key], [1])
      return holds === 1
    } catch (cause) {
      throw new ProverFault(`the verifier failed: ${cause instanceof Error ? cause.message : cause}`, { cause })
    }
  }
}

/**
 * The last commitment of a proof stands in four elements: the lower 136 bits of each coordinate, and the rest. What is
 * above 120 bits of such a rest would fall off unseen, so a proof with a bit changed there would hold as well.
 */
function hasPlainEnd(proof: Uint8Array): boolean {
  return [96, 32].every((fromEnd) => {
    const start = PROOF_BYTES - fromEnd
    return proof.subarray(start, start + 17).every((byte) => byte === 0)
  })
}

function lengthOf(...parts: Uint8Array[]): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(parts.reduce((total, part) => total + part.length, 0))
  return bytes
}
