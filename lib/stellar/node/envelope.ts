import { createHash } from 'node:crypto'
import { StrKey, xdr } from '@stellar/stellar-sdk'

/** A transaction as its own account signed it. */
export interface SignedTransaction {
  /** the transaction and its signatures; a v0 envelope is converted, which keeps its hash (CAP-15) */
  envelope: xdr.TransactionV1Envelope
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

/**
 * Decodes an envelope of any form.
 * @param encoded XDR, in bytes or in base64
 * @throws the SDK's errors if it isn't the XDR of one envelope
 */
export function decodeEnvelope(encoded: string | Uint8Array, passphrase: string): DecodedEnvelope {
  const decoded =
    typeof encoded === 'string'
      ? xdr.TransactionEnvelope.fromXdr(encoded, 'base64')
      : xdr.TransactionEnvelope.fromXdr(encoded)
  if (decoded.type === 'envelopeTypeTx') return { form: 'v1', ...readSigned(decoded.v1, passphrase) }
  if (decoded.type === 'envelopeTypeTxV0') {
    const { tx, signatures } = decoded.v0
    return { form: 'v0', ...readSigned(new xdr.TransactionV1Envelope({ tx: asVersion1(tx), signatures }), passphrase) }
  }
  const { tx } = decoded.feeBump
  const feeBump = {
    hashHex: hashFeeBump(tx, passphrase).toString('hex'),
    feeSource: baseAccount(tx.feeSource),
    fee: tx.fee,
  }
  return { form: 'fee-bump', ...readSigned(tx.innerTx.v1, passphrase), feeBump }
}

function readSigned(envelope: xdr.TransactionV1Envelope, passphrase: string): SignedTransaction {
  const { tx } = envelope
  const hash = hashOf(xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTx(tx), passphrase)
  return { envelope, hash, hashHex: hash.toString('hex'), source: baseAccount(tx.sourceAccount) }
}

const KEY_TYPE_ED25519 = Uint8Array.of(0, 0, 0, 0)

/** A v0 transaction has the bytes of a v1 transaction without the discriminant of its source account. */
function asVersion1(tx: xdr.TransactionV0): xdr.Transaction {
  return xdr.Transaction.fromXdr(Buffer.concat([KEY_TYPE_ED25519, tx.toXdr()]))
}

/** The hash of a fee bump, 32 bytes: the hash that its sponsor signs and that identifies it on the ledger. */
export function hashFeeBump(tx: xdr.FeeBumpTransaction, passphrase: string): Buffer {
  return hashOf(xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTxFeeBump(tx), passphrase)
}

function hashOf(taggedTransaction: xdr.TransactionSignaturePayloadTaggedTransaction, passphrase: string): Buffer {
  const networkId = createHash('sha256').update(passphrase).digest()
  const payload = new xdr.TransactionSignaturePayload({ networkId, taggedTransaction })
  return createHash('sha256').update(payload.toXdr()).digest()
}

/** The G-address of an account that may be muxed (CAP-27). */
export function baseAccount(account: xdr.MuxedAccount): string {
  const key = account.type === 'keyTypeEd25519' ? account.ed25519 : account.med25519.ed25519
  return StrKey.encodeEd25519PublicKey(key.toBytes())
}
