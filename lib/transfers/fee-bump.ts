import { type Keypair, StrKey, xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/refusal/refusal.ts'
import { signEd25519 } from '#lib/stellar/ed25519.ts'
import { hashTransaction } from '#lib/stellar/transaction.ts'

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
 * Decodes `signedXDR`, the base64 XDR of a V1 envelope. A client may send neither a fee bump nor a V0 envelope.
 * @throws Refusal `signed-xdr-invalid`
 */
export function decodeInner(signedXDR: string, passphrase: string): InnerTransaction {
  const envelope = decodeEnvelope(signedXDR)
  if (envelope.type !== 'envelopeTypeTx') throw malformed()
  const { tx } = envelope.v1
  const digest = hashTransaction(xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTx(tx), passphrase)
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

/** The outer fee of a fee bump in stroops: exactly twice the inner fee, resource fee included. */
export function outerFee(innerFee: bigint): bigint {
  return 2n * innerFee
}

/** A signed fee-bump transaction (CAP-15). */
export interface FeeBump {
  /** base64 XDR, ready to send */
  envelope: string
  /** 64 hex digits */
  hash: string
  /** the most that the network may take, in stroops */
  bid: bigint
}

/**
 * Wraps `inner` in a fee bump that `sponsor` pays and signs. The outer fee is exactly twice the inner fee. The fee bump
 * is built from XDR: the SDK's builder takes a fee per operation and adds the resource fee once more, three times in
 * all. The envelope is read back and compared with `inner` before it leaves this function.
 */
export function wrapInFeeBump(inner: InnerTransaction, sponsor: Keypair, passphrase: string): FeeBump {
  const bid = outerFee(BigInt(inner.envelope.tx.fee))
  const tx = new xdr.FeeBumpTransaction({
    feeSource: xdr.MuxedAccount.keyTypeEd25519(sponsor.rawPublicKey()),
    fee: bid,
    innerTx: xdr.FeeBumpTransactionInnerTx.envelopeTypeTx(inner.envelope),
    ext: xdr.FeeBumpTransactionExt.v0(),
  })
  const tagged = xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTxFeeBump(tx)
  const outerHash = hashTransaction(tagged, passphrase)
  const signature = new xdr.DecoratedSignature({
    hint: sponsor.signatureHint(),
    signature: signEd25519(sponsor.rawSecretKey(), outerHash),
  })
  const built = xdr.TransactionEnvelope.envelopeTypeTxFeeBump(
    new xdr.FeeBumpTransactionEnvelope({ tx, signatures: [signature] }),
  )
  const envelope = Buffer.from(built.toXdr()).toString('base64')
  assertFeeBump(envelope, inner, sponsor, bid)
  return { envelope, hash: outerHash.toString('hex'), bid }
}

function assertFeeBump(envelope: string, inner: InnerTransaction, sponsor: Keypair, bid: bigint): void {
  const built = xdr.TransactionEnvelope.fromXdr(envelope, 'base64')
  const faithful =
    built.type === 'envelopeTypeTxFeeBump' &&
    built.feeBump.tx.fee === bid &&
    built.feeBump.tx.feeSource.type === 'keyTypeEd25519' &&
    StrKey.encodeEd25519PublicKey(built.feeBump.tx.feeSource.ed25519.toBytes()) === sponsor.publicKey() &&
    built.feeBump.tx.innerTx.v1.equals(inner.envelope)
  if (!faithful) throw new Error('the fee bump that was built has another transaction, fee or payer than was asked for')
}
