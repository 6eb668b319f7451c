import { xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { HintedSignature } from '#lib/stellar/account.ts'
import { hashTransaction } from '#lib/stellar/transaction.ts'

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
  const { signatures } = envelope.value
  const tx = envelope.type === 'envelopeTypeTxV0' ? asVersion1(envelope.value.tx) : envelope.value.tx
  return {
    source: tx.sourceAccount.type === 'keyTypeEd25519' ? tx.sourceAccount.value.toBytes() : undefined,
    sequence: tx.seqNum,
    timeBounds: tx.cond.type === 'precondTime' ? tx.cond.value : undefined,
    hasMemo: tx.memo.type !== 'memoNone',
    operations: tx.operations,
    signatures: signatures.map(({ hint, signature }) => ({ hint: hint.toBytes(), signature: signature.toBytes() })),
    hash: hashTransaction(xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTx(tx), networkPassphrase),
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
 * A v0 transaction is hashed as v1 (CAP-15): the same bytes behind the discriminant of its source account, so both forms
 * of a challenge have one hash.
 */
function asVersion1(tx: xdr.TransactionV0): xdr.Transaction {
  return xdr.Transaction.fromXdr(Buffer.concat([KEY_TYPE_ED25519, tx.toXdr()]))
}

const KEY_TYPE_ED25519 = Uint8Array.of(0, 0, 0, 0)

/** The 400 of everything that is wrong with a challenge; `reason` completes "invalid challenge: ". */
export function invalidChallenge(reason: string, cause?: unknown): Refusal {
  return new Refusal('challenge-invalid', `invalid challenge: ${reason}`, cause === undefined ? {} : { cause })
}
