import { xdr } from '@stellar/stellar-sdk'

export type PlainEnvelope = Extract<xdr.TransactionEnvelope, { type: 'envelopeTypeTx' }>
export type FeeBumpEnvelope = Extract<xdr.TransactionEnvelope, { type: 'envelopeTypeTxFeeBump' }>

/** Nesting levels of an envelope. The SDK's limit is 1,500, and the close meta adds some. */
const MAX_DEPTH = 1_450

/** A text that isn't exactly one TransactionEnvelope in base64. */
export class UnreadableEnvelope extends Error {}

/** V0 becomes V1, as in stellar-core before any check. @throws UnreadableEnvelope */
export function decodeEnvelope(bytes: Uint8Array): PlainEnvelope | FeeBumpEnvelope {
  try {
    const { schema } = xdr.TransactionEnvelope
    const decoded = xdr.TransactionEnvelope.fromXdrObject(schema.decode(bytes, { maxDepth: MAX_DEPTH }))
    return decoded.type === 'envelopeTypeTxV0' ? upgrade(decoded.v0) : decoded
  } catch (cause) {
    throw new UnreadableEnvelope('not a transaction envelope', { cause })
  }
}

function upgrade({ tx, signatures }: xdr.TransactionV0Envelope): PlainEnvelope {
  const { sourceAccountEd25519, fee, seqNum, timeBounds, memo, operations } = tx
  const v1 = new xdr.Transaction({
    sourceAccount: xdr.MuxedAccount.keyTypeEd25519(sourceAccountEd25519),
    fee,
    seqNum,
    cond: timeBounds ? xdr.Preconditions.precondTime(timeBounds) : xdr.Preconditions.precondNone(),
    memo,
    operations,
    ext: xdr.TransactionExt.v0(),
  })
  return xdr.TransactionEnvelope.envelopeTypeTx(new xdr.TransactionV1Envelope({ tx: v1, signatures }))
}
