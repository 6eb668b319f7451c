import type { BarretenbergSync } from '@aztec/bb.js'
import { numberToBytesBE } from '@noble/curves/utils.js'
import { concatBytes } from '@noble/hashes/utils.js'
import { isCanonical } from '#lib/wallet/grumpkin.ts'
import { PROOF_BYTES } from '#lib/wallet/prover.ts'
import { publicInputBytes } from '#lib/wallet/statement.ts'
import { type CircuitName, KEY_BYTES } from './circuits.ts'
import { ProverError } from './prover-error.ts'

/**
 * Whether a proof verifies for these public inputs. A malformed proof does not.
 * @throws ProverError if the verifier itself fails; it must not be used again
 */
export type Verify = (circuit: CircuitName, publicInputs: Uint8Array, proof: Uint8Array, key: Uint8Array) => boolean

/**
 * Loads a synchronous verifier into this thread, which takes some 50 MB and half a second. It needs only the generator
 * and the G2 point of the reference string, 192 bytes, and no file.
 */
export async function loadVerifier(string: { g2: Uint8Array }): Promise<Verify> {
  const verify = await loadBackend(string.g2, 'acir_verify_ultra_keccak_honk')
  return (circuit, publicInputs, proof, key) => {
    if (publicInputs.length !== publicInputBytes(circuit) || proof.length !== PROOF_BYTES) return false
    // bb reduces larger words modulo the field; the network's verifier rejects them.
    if (key.length !== KEY_BYTES || !isCanonical(proof) || !hasNoDroppedBits(proof)) return false
    return verify(publicInputs, proof, key)
  }
}

/** Whether a proof with zero knowledge verifies for these public inputs. @throws ProverError as `Verify` */
export type VerifyZeroKnowledge = (publicInputs: Uint8Array, proof: Uint8Array, key: Uint8Array) => boolean

/**
 * Loads a verifier for proofs with zero knowledge, like `loadVerifier`. The keys of both flavours are the same, so a key
 * does not tell which one a proof has: this one rejects a proof without zero knowledge.
 */
export async function loadZeroKnowledgeVerifier(g2: Uint8Array): Promise<VerifyZeroKnowledge> {
  const verify = await loadBackend(g2, 'acir_verify_ultra_keccak_zk_honk')
  return (publicInputs, proof, key) => isCanonical(proof) && hasNoDroppedBits(proof) && verify(publicInputs, proof, key)
}

/** The generator of G1, with which every reference string begins. */
const GENERATOR = new Uint8Array(64)
GENERATOR[31] = 1
GENERATOR[63] = 2

async function loadBackend(g2: Uint8Array, exported: string): Promise<VerifyZeroKnowledge> {
  const bb = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
  const { RawBuffer } = bb
  // The public accessor shares one instance per process, but a failed instance must be replaced.
  const { new: open } = bb.BarretenbergSync as unknown as { new: () => Promise<BarretenbergSync> }
  const api = await open()
  api.srsInitSrs(new RawBuffer(GENERATOR), 1, new RawBuffer(g2))
  const wasm = api.getWasm()
  return (publicInputs, proof, key) => {
    const statement = concatBytes(lengthOf(publicInputs, proof), publicInputs, proof)
    try {
      // The synchronous class lacks the typed method.
      const [[holds] = []] = wasm.callWasmExport(exported, [statement, key], [1])
      return holds === 1
    } catch (cause) {
      throw new ProverError('failed', `the verifier failed: ${cause instanceof Error ? cause.message : cause}`, {
        cause,
      })
    }
  }
}

/**
 * The last commitment of both flavours takes four words: for each coordinate the lower 136 bits, then the rest. bb drops the bits of the
 * rest above 120, so a proof with such a bit set would verify as well; the network's verifier rejects it.
 */
function hasNoDroppedBits(proof: Uint8Array): boolean {
  return [96, 32].every((fromEnd) => {
    const start = proof.length - fromEnd
    return proof.subarray(start, start + 17).every((byte) => byte === 0)
  })
}

function lengthOf(...parts: Uint8Array[]): Uint8Array {
  return numberToBytesBE(
    parts.reduce((total, part) => total + part.length, 0),
    4,
  )
}
