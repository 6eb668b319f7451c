import { hash, type Keypair, StrKey, xdr } from '@stellar/stellar-sdk'
import { signEd25519 } from '#lib/stellar/ed25519.ts'
import type { InnerTransaction } from './inner-transaction.ts'
import { outerFee } from './policy.ts'

/** A signed fee-bump transaction (CAP-15). */
export interface FeeBump {
  /** base64 XDR, ready to send */
  envelope: string
  /** 64 hex digits */
  hash: string
  /** what the network may take at most, in stroops */
  bid: bigint
}

/**
 * Wraps `inner` in a fee bump that `sponsor` pays and signs. The outer fee is exactly twice the inner fee. It is built
 * from XDR, because the SDK's builder takes a fee per operation and adds the resource fee once more: thrice, not twice.
 * What was built is read back and held against what was meant before anybody sees it.
 */
export function wrapInFeeBump(inner: InnerTransaction, sponsor: Keypair, passphrase: string): FeeBump {
  const bid = outerFee(BigInt(inner.envelope.tx.fee))
  const tx = new xdr.FeeBumpTransaction({
    feeSource: xdr.MuxedAccount.keyTypeEd25519(sponsor.rawPublicKey()),
    fee: bid,
    innerTx: xdr.FeeBumpTransactionInnerTx.envelopeTypeTx(inner.envelope),
    ext: xdr.FeeBumpTransactionExt.v0(),
  })
  const preimage = new xdr.TransactionSignaturePayload({
    networkId: hash(passphrase),
    taggedTransaction: xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTxFeeBump(tx),
  })
  const outerHash = hash(preimage.toXdr())
  const signature = new xdr.DecoratedSignature({
    hint: sponsor.signatureHint(),
    signature: signEd25519(sponsor.rawSecretKey(), outerHash),
  })
  const built = xdr.TransactionEnvelope.envelopeTypeTxFeeBump(
    new xdr.FeeBumpTransactionEnvelope({ tx, signatures: [signature] }),
  )
  const envelope = Buffer.from(built.toXdr()).toString('base64')
  assertFeeBump(envelope, inner, sponsor, bid)
  return { envelope, hash: Buffer.from(outerHash).toString('hex'), bid }
}

function assertFeeBump(envelope: string, inner: InnerTransaction, sponsor: Keypair, bid: bigint): void {
  const built = xdr.TransactionEnvelope.fromXdr(envelope, 'base64')
  const faithful =
    built.type === 'envelopeTypeTxFeeBump' &&
    built.feeBump.tx.fee === bid &&
    built.feeBump.tx.feeSource.type === 'keyTypeEd25519' &&
    StrKey.encodeEd25519PublicKey(built.feeBump.tx.feeSource.ed25519.toBytes()) === sponsor.publicKey() &&
    built.feeBump.tx.innerTx.v1.equals(inner.envelope)
  if (!faithful) throw new Error('the fee bump that was built is not the one that was meant')
}
