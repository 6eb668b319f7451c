import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import { verifyEd25519 } from '#lib/stellar/node/ed25519.ts'
import type { Signed } from './envelope.ts'

/** stellar-core's SignatureChecker: one per signed transaction, because it records which signatures were used. */
export interface SignatureChecker {
  /**
   * Whether the signatures reach the weight `needed` among `signers`. Stops at the signature that reaches it, so a
   * further valid one stays unused; weight 0 still requires one valid signature.
   */
  carries(signers: readonly xdr.Signer[], needed: number): boolean
  /** False means txBAD_AUTH_EXTRA. */
  allUsed(): boolean
}

/** The account's signers as core lists them: the master key first, unless its weight is 0. */
export function signersOf(account: xdr.AccountEntry): xdr.Signer[] {
  const master = account.thresholds.value[0] ?? 0
  if (master === 0) return account.signers
  return [masterSigner(account.accountId, master), ...account.signers]
}

/** The master key as the only signer, for an account that doesn't exist yet. */
export function masterSigner(accountId: xdr.PublicKey, weight: number): xdr.Signer {
  return new xdr.Signer({ key: xdr.SignerKey.signerKeyTypeEd25519(accountId.ed25519), weight })
}

/** The order in which kinds of signers are tried (SignatureChecker::checkSignature). */
const KINDS = ['signerKeyTypeHashX', 'signerKeyTypeEd25519', 'signerKeyTypeEd25519SignedPayload'] as const

export function checkSignatures(signed: Signed): SignatureChecker {
  const used = signed.signatures.map(() => false)
  return {
    carries(signers, needed) {
      let weight = 0
      for (const signer of signers) {
        if (signer.key.type !== 'signerKeyTypePreAuthTx' || !equal(signer.key.preAuthTx.value, signed.hash)) continue
        weight += capped(signer)
        if (weight >= needed) return true
      }
      for (const kind of KINDS) {
        const candidates = signers.filter((signer) => signer.key.type === kind)
        for (const [index, signature] of signed.signatures.entries()) {
          const match = candidates.findIndex((signer) => verifies(signed, index, signature, signer.key))
          const signer = candidates[match]
          if (!signer) continue
          used[index] = true
          candidates.splice(match, 1)
          weight += capped(signer)
          if (weight >= needed) return true
        }
      }
      return false
    },
    allUsed: () => used.every(Boolean),
  }
}

function capped(signer: xdr.Signer): number {
  return Math.min(signer.weight, 255)
}

function verifies(signed: Signed, index: number, { hint, signature }: xdr.DecoratedSignature, key: xdr.SignerKey) {
  if (!equal(hint.value, hintOf(key))) return false
  const name = `${index}:${key.toXdr('base64')}`
  const cached = signed.verified.get(name)
  if (cached !== undefined) return cached
  const verdict = verify(signed.hash, signature.value, key)
  signed.verified.set(name, verdict)
  return verdict
}

function verify(hash: Uint8Array, signature: Uint8Array, key: xdr.SignerKey): boolean {
  switch (key.type) {
    case 'signerKeyTypeEd25519':
      return verifyEd25519(key.ed25519.value, hash, signature)
    case 'signerKeyTypeHashX':
      return equal(createHash('sha256').update(signature).digest(), key.hashX.value)
    case 'signerKeyTypeEd25519SignedPayload': {
      const { ed25519, payload } = key.ed25519SignedPayload
      return verifyEd25519(ed25519.value, payload, signature)
    }
    default:
      return false
  }
}

/** Last four bytes of the key; of a signed payload (CAP-40) those XOR the payload's last four, aligned left. */
function hintOf(key: xdr.SignerKey): Uint8Array {
  switch (key.type) {
    case 'signerKeyTypeEd25519':
      return key.ed25519.value.subarray(28)
    case 'signerKeyTypeHashX':
      return key.hashX.value.subarray(28)
    case 'signerKeyTypePreAuthTx':
      return key.preAuthTx.value.subarray(28)
    case 'signerKeyTypeEd25519SignedPayload': {
      const tail = key.ed25519SignedPayload.payload.subarray(-4)
      return key.ed25519SignedPayload.ed25519.value.subarray(28).map((byte, index) => byte ^ (tail[index] ?? 0))
    }
  }
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}
