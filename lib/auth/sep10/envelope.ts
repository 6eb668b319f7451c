import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'
import type { HintedSignature } from '#lib/stellar/account.ts'

/** Bytes of base64. A challenge has about 520, and 100 more per signature; decoding costs many times its input. */
const LONGEST_ENVELOPE = 8192

/** A decoded challenge: what both envelope forms have in common, and the hash that is signed. */
export interface ChallengeEnvelope {
  /** Raw key of the source account, or nothing if that is muxed. */
  source: Uint8Array | undefined
  sequence: bigint
  timeBounds: xdr.TimeBounds | undefined
  hasMemo: boolean
  operations: xdr.Operation[]
  signatures: HintedSignature[]
  hash: Uint8Array
}

/**
 * Decodes base64 XDR: padded or not, URL-safe or not, as the SDK does.
 * @throws Refusal `challenge-invalid`
 */
export function decodeChallenge(text: string, networkPassphrase: string): ChallengeEnvelope {
  if (text.length > LONGEST_ENVELOPE) throw invalidChallenge('it is larger than any challenge')
  const envelope = decodeEnvelope(text)
  if (envelope.type === 'envelopeTypeTxFeeBump') throw invalidChallenge('it is a fee-bump transaction')
  const { tx, signatures } = envelope.value
  const shared = {
    sequence: tx.seqNum,
    hasMemo: tx.memo.type !== 'memoNone',
    operations: tx.operations,
    signatures: signatures.map(({ hint, signature }) => ({ hint: hint.toBytes(), signature: signature.toBytes() })),
    hash: hashTransaction(tx, networkPassphrase),
  }
  if (tx instanceof xdr.TransactionV0) {
    return { ...shared, source: tx.sourceAccountEd25519.toBytes(), timeBounds: tx.timeBounds ?? undefined }
  }
  return {
    ...shared,
    source: tx.sourceAccount.type === 'keyTypeEd25519' ? tx.sourceAccount.value.toBytes() : undefined,
    timeBounds: tx.cond.type === 'precondTime' ? tx.cond.value : undefined,
  }
}

function decodeEnvelope(text: string): xdr.TransactionEnvelope {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return xdr.TransactionEnvelope.fromXdr(new Uint8Array(Buffer.from(binary, 'latin1')))
  } catch (cause) {
    throw invalidChallenge('it is not a base64 transaction envelope', cause)
  }
}

/**
 * SHA-256 of network id, envelope type and transaction. A v0 transaction is hashed as v1 (CAP-15): the same bytes
 * behind the discriminant of its source account, so both forms of a challenge have one hash.
 */
function hashTransaction(tx: xdr.Transaction | xdr.TransactionV0, networkPassphrase: string): Uint8Array {
  const digest = createHash('sha256')
  digest.update(createHash('sha256').update(networkPassphrase).digest())
  digest.update(ENVELOPE_TYPE_TX)
  if (tx instanceof xdr.TransactionV0) digest.update(KEY_TYPE_ED25519)
  return new Uint8Array(digest.update(tx.toXdr()).digest())
}

const ENVELOPE_TYPE_TX = Uint8Array.of(0, 0, 0, 2)
const KEY_TYPE_ED25519 = Uint8Array.of(0, 0, 0, 0)

/** The 400 of everything that is wrong with a challenge; `reason` completes "invalid challenge: ". */
export function invalidChallenge(reason: string, cause?: unknown): Refusal {
  return new Refusal('challenge-invalid', `invalid challenge: ${reason}`, cause === undefined ? {} : { cause })
}
