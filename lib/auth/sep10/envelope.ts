import type { xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/refusal/refusal.ts'
import { type DecodedEnvelope, decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import type { HintedSignature } from '#lib/stellar/node/signature-weight.ts'

/** In bytes of base64. A challenge has about 520, and 100 more per signature. Decoding costs many times its input. */
const MAX_ENVELOPE_LENGTH = 8192

/** A decoded challenge, with the hash that is signed. */
export interface ChallengeEnvelope {
  /** Raw key of the source account; undefined for a muxed one. */
  source: Uint8Array | undefined
  sequence: bigint
  timeBounds: xdr.TimeBounds | undefined
  hasMemo: boolean
  operations: xdr.Operation[]
  signatures: HintedSignature[]
  hash: Uint8Array
}

/**
 * Decodes base64 XDR, padded or not and URL-safe or not, like the SDK.
 * @throws Refusal `challenge-invalid`
 */
export function decodeChallenge(text: string, networkPassphrase: string): ChallengeEnvelope {
  if (text.length > MAX_ENVELOPE_LENGTH) throw invalidChallenge('it is larger than any challenge')
  const { form, envelope, hash } = decode(text, networkPassphrase)
  if (form === 'fee-bump') throw invalidChallenge('it is a fee-bump transaction')
  const { tx, signatures } = envelope
  return {
    source: tx.sourceAccount.type === 'keyTypeEd25519' ? tx.sourceAccount.value.toBytes() : undefined,
    sequence: tx.seqNum,
    timeBounds: tx.cond.type === 'precondTime' ? tx.cond.value : undefined,
    hasMemo: tx.memo.type !== 'memoNone',
    operations: tx.operations,
    signatures: signatures.map(({ hint, signature }) => ({ hint: hint.toBytes(), signature: signature.toBytes() })),
    hash,
  }
}

function decode(text: string, networkPassphrase: string): DecodedEnvelope {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return decodeEnvelope(new Uint8Array(Buffer.from(binary, 'latin1')), networkPassphrase)
  } catch (cause) {
    throw invalidChallenge('it is not a base64 transaction envelope', cause)
  }
}

/** `reason` completes "invalid challenge: ". */
export function invalidChallenge(reason: string, cause?: unknown): Refusal {
  return new Refusal('challenge-invalid', `invalid challenge: ${reason}`, cause === undefined ? {} : { cause })
}
