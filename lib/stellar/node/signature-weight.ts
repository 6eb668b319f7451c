import { StrKey } from '@stellar/stellar-sdk'
import type { Signer } from '../account.ts'
import { verifyEd25519 } from './ed25519.ts'

/** A decorated signature: the last four bytes of the signer's public key, and the 64 bytes of the signature. */
export interface HintedSignature {
  hint: Uint8Array
  signature: Uint8Array
}

/**
 * The weight of signatures. `allValid`: every signature belongs to a signer. `repeats`: how many are by a signer who
 * has already signed; the ledger rejects those (txBAD_AUTH_EXTRA). `signedBy` lists each signer once.
 */
interface Weighed {
  weight: number
  allValid: boolean
  repeats: number
  signedBy: string[]
}

/**
 * Weighs `signatures` over `hash` (32 bytes). Each signer counts once. A signature that matches no signer leaves
 * `allValid` false.
 */
export function weighSignatures(input: {
  hash: Uint8Array
  signatures: readonly HintedSignature[]
  signers: readonly Signer[]
}): Weighed {
  const signers = input.signers.map(({ key, weight }) => ({ key, weight, raw: StrKey.decodeEd25519PublicKey(key) }))
  const weighed: Weighed = { weight: 0, allValid: true, repeats: 0, signedBy: [] }
  for (const { hint, signature } of input.signatures) {
    const signer = signers.find(({ raw }) => isHintOf(hint, raw) && verifyEd25519(raw, input.hash, signature))
    if (!signer) weighed.allValid = false
    else if (weighed.signedBy.includes(signer.key)) weighed.repeats += 1
    else {
      weighed.weight += signer.weight
      weighed.signedBy.push(signer.key)
    }
  }
  return weighed
}

function isHintOf(hint: Uint8Array, publicKey: Uint8Array): boolean {
  return Buffer.compare(hint, publicKey.subarray(28)) === 0
}
