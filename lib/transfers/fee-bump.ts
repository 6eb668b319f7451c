import { type Keypair, xdr } from '@stellar/stellar-sdk'
import { signEd25519 } from '#lib/stellar/node/ed25519.ts'
import { decodeEnvelope, encodeFeeBump, hashFeeBump, type SignedTransaction } from '#lib/stellar/node/envelope.ts'

/** The outer fee of a fee bump in stroops: exactly twice the inner fee, resource fee included. */
export const outerFee = (innerFee: bigint): bigint => 2n * innerFee

/** A signed fee-bump transaction (CAP-15). */
export interface FeeBump {
  /** base64 XDR, ready to send */
  envelope: string
  /** 64 hex digits */
  hash: string
  /** the maximum fee that the network may charge, in stroops */
  bid: bigint
}

/**
 * Wraps `inner` in a fee bump that `sponsor` pays and signs, built from XDR: the SDK's builder takes a fee per operation and adds the
 * resource fee once more, three times in all. The envelope is read back and compared with `inner` before it leaves this function.
 */
export function wrapInFeeBump(inner: SignedTransaction, sponsor: Keypair, passphrase: string): FeeBump {
  const bid = outerFee(BigInt(inner.envelope.tx.fee))
  const tx = new xdr.FeeBumpTransaction({
    feeSource: xdr.MuxedAccount.keyTypeEd25519(sponsor.rawPublicKey()),
    fee: bid,
    innerTx: xdr.FeeBumpTransactionInnerTx.envelopeTypeTx(inner.envelope),
    ext: xdr.FeeBumpTransactionExt.v0(),
  }).toXdr()
  const outerHash = hashFeeBump(tx, passphrase)
  const signature = new xdr.DecoratedSignature({
    hint: sponsor.signatureHint(),
    signature: signEd25519(sponsor.rawSecretKey(), outerHash),
  })
  const envelope = encodeFeeBump(tx, signature)
  const hash = outerHash.toString('hex')
  const { feeBump, bytes } = decodeEnvelope(envelope, passphrase)
  const isFaithful =
    feeBump?.fee === bid &&
    feeBump.feeSource === sponsor.publicKey() &&
    feeBump.hashHex === hash &&
    Buffer.compare(bytes, inner.bytes) === 0
  if (!isFaithful) throw new Error('the built fee bump has another transaction, fee or payer than requested')
  return { envelope, hash, bid }
}
