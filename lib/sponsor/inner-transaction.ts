import { createHash } from 'node:crypto'
import { hash, StrKey, xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'

/** The network's own limit on an envelope, in bytes. */
const ENVELOPE_LIMIT = 132_096

/** A client's signed transaction, decoded. */
export interface InnerTransaction {
  /** the V1 envelope: transaction and signatures */
  envelope: xdr.TransactionV1Envelope
  /** the transaction hash on this network, 32 bytes and as 64 hex digits */
  hash: Uint8Array
  hashHex: string
  /** the base account of its source, a G-address without the muxed id */
  source: string
}

/**
 * Decodes `signedXDR`, the base64 XDR of a V1 envelope. Fee bumps and V0 envelopes are not what a client may send.
 * @throws Refusal `signed-xdr-invalid`
 */
export function decodeInner(signedXDR: string, passphrase: string): InnerTransaction {
  const envelope = decodeEnvelope(signedXDR)
  if (envelope.type !== 'envelopeTypeTx') throw malformed()
  const { tx } = envelope.v1
  const preimage = new xdr.TransactionSignaturePayload({
    networkId: hash(passphrase),
    taggedTransaction: xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTx(tx),
  })
  const digest = createHash('sha256').update(preimage.toXdr()).digest()
  return { envelope: envelope.v1, hash: digest, hashHex: digest.toString('hex'), source: baseAccount(tx.sourceAccount) }
}

function decodeEnvelope(signedXDR: string): xdr.TransactionEnvelope {
  if (signedXDR.length > Math.ceil(ENVELOPE_LIMIT / 3) * 4) throw malformed()
  try {
    return xdr.TransactionEnvelope.fromXdr(signedXDR, 'base64')
  } catch (cause) {
    throw malformed(cause)
  }
}

function malformed(cause?: unknown): Refusal {
  return new Refusal('signed-xdr-invalid', 'malformed transaction XDR', cause === undefined ? {} : { cause })
}

/** The G-address behind an account that may be muxed (CAP-27). */
export function baseAccount(account: xdr.MuxedAccount): string {
  const key = account.type === 'keyTypeEd25519' ? account.ed25519 : account.med25519.ed25519
  return StrKey.encodeEd25519PublicKey(key.toBytes())
}
