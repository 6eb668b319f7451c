import { createHash } from 'node:crypto'
import { StrKey, xdr } from '@stellar/stellar-sdk'

/** A transaction as its own account signed it. */
export interface SignedTransaction {
  /** the transaction and its signatures; a v0 envelope is converted, which keeps its hash (CAP-15) */
  envelope: xdr.TransactionV1Envelope
  /** the XDR of `envelope` */
  bytes: Uint8Array
  /** the transaction's hash on its network, 32 bytes and as 64 hex digits */
  hash: Uint8Array
  hashHex: string
  /** the base account of its source, a G-address without the muxed ID */
  source: string
}

/** A decoded envelope: the signed transaction, and the fee bump around it if there is one. */
export interface DecodedEnvelope extends SignedTransaction {
  form: 'v0' | 'v1' | 'fee-bump'
  /** `hashHex` is the outer hash; `feeSource` a base account; `fee` in stroops */
  feeBump?: { hashHex: string; feeSource: string; fee: bigint }
}

/** The discriminants of the envelopes, which are also those of the signed payloads. */
const TRANSACTION = Uint8Array.of(0, 0, 0, 2)
const FEE_BUMP = Uint8Array.of(0, 0, 0, 5)

/**
 * Decodes an envelope of any form. The decoder accepts exactly one encoding of each value, so the hashes are those of the
 * received bytes: encoding 30 kB of proofs once more would cost as much as decoding them.
 * @param encoded XDR, in bytes or in base64
 * @throws the SDK's errors if it isn't the XDR of one envelope
 */
export function decodeEnvelope(encoded: string | Uint8Array, passphrase: string): DecodedEnvelope {
  const bytes = typeof encoded === 'string' ? decodeBase64(encoded) : encoded
  const decoded = xdr.TransactionEnvelope.fromXdr(bytes)
  if (decoded.type === 'envelopeTypeTx') return { form: 'v1', ...readSigned(decoded.v1, bytes.subarray(4), passphrase) }
  if (decoded.type === 'envelopeTypeTxV0') {
    // It has the bytes of a v1 envelope: its own discriminant becomes that of the source account.
    return { form: 'v0', ...readSigned(xdr.TransactionV1Envelope.fromXdr(bytes), bytes, passphrase) }
  }
  const { tx, signatures } = decoded.feeBump
  const outer = bytes.subarray(FEE_BUMP.length, -lengthOf(signatures))
  const inner = outer.subarray(tx.feeSource.toXdr().length + 8 + TRANSACTION.length, -4)
  const feeBump = {
    hashHex: hashFeeBump(outer, passphrase).toString('hex'),
    feeSource: baseAccount(tx.feeSource),
    fee: tx.fee,
  }
  return { form: 'fee-bump', ...readSigned(tx.innerTx.v1, inner, passphrase), feeBump }
}

/** Buffer decodes much faster than the SDK, but ignores characters that aren't base64. */
function decodeBase64(encoded: string): Uint8Array {
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.toString('base64') === encoded ? bytes : xdr.TransactionEnvelope.fromXdr(encoded, 'base64').toXdr()
}

function readSigned(envelope: xdr.TransactionV1Envelope, bytes: Uint8Array, passphrase: string): SignedTransaction {
  const { tx, signatures } = envelope
  const hash = hashOf(TRANSACTION, bytes.subarray(0, -lengthOf(signatures)), passphrase)
  return { envelope, bytes, hash, hashHex: hash.toString('hex'), source: baseAccount(tx.sourceAccount) }
}

/** The length of the signatures at the end of an envelope, in bytes: a count, and for each a hint and its padded bytes. */
function lengthOf(signatures: readonly xdr.DecoratedSignature[]): number {
  return signatures.reduce((sum, { signature }) => sum + 8 + 4 * Math.ceil(signature.toBytes().length / 4), 4)
}

/** The envelope of a signed transaction, base64. */
export function encodeSigned({ bytes }: SignedTransaction): string {
  return Buffer.concat([TRANSACTION, bytes]).toString('base64')
}

/** The envelope of a fee bump with one signature, base64. `tx`: the XDR of the fee bump */
export function encodeFeeBump(tx: Uint8Array, signature: xdr.DecoratedSignature): string {
  return Buffer.concat([FEE_BUMP, tx, Uint8Array.of(0, 0, 0, 1), signature.toXdr()]).toString('base64')
}

/**
 * The hash of a fee bump, 32 bytes: the hash that its sponsor signs and that identifies it on the ledger.
 * @param tx its XDR
 */
export function hashFeeBump(tx: Uint8Array, passphrase: string): Buffer {
  return hashOf(FEE_BUMP, tx, passphrase)
}

function hashOf(type: Uint8Array, tx: Uint8Array, passphrase: string): Buffer {
  const networkId = createHash('sha256').update(passphrase).digest()
  return createHash('sha256').update(networkId).update(type).update(tx).digest()
}

/** The G-address of an account that may be muxed (CAP-27). */
export function baseAccount(account: xdr.MuxedAccount): string {
  const key = account.type === 'keyTypeEd25519' ? account.ed25519 : account.med25519.ed25519
  return StrKey.encodeEd25519PublicKey(key.toBytes())
}
