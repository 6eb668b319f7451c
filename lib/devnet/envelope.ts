import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import { baseAccountId } from './ledger-key.ts'

/** What its signatures cover, and what is already known of them: verifying costs more than all else together. */
export interface Signed {
  /** 32 bytes: what is signed */
  readonly hash: Uint8Array
  readonly signatures: readonly xdr.DecoratedSignature[]
  /** verdicts by `<signature index>:<signer key>` */
  readonly verified: Map<string, boolean>
}

/** The transaction proper: the whole of a plain envelope, the inside of a fee bump. */
export interface Inner extends Signed {
  readonly tx: xdr.Transaction
  /** strkey of the account whose sequence number it uses */
  readonly source: string
  /** bytes of its own V1 envelope */
  readonly size: number
  readonly isSoroban: boolean
  readonly soroban: xdr.SorobanTransactionData | undefined
}

export interface FeeBump extends Signed {
  readonly fee: bigint
}

/** A submitted envelope, decoded once. */
export interface Envelope {
  /** base64 XDR */
  readonly xdr: string
  readonly envelope: xdr.TransactionEnvelope
  /** hex SHA-256 of the envelope with its signatures: what the queue bans */
  readonly fullHash: string
  /** hex transaction hash: the outer one of a fee bump */
  readonly hash: string
  /** hex hash of the transaction inside a fee bump */
  readonly innerHash: string | undefined
  /** full hash of the envelope inside a fee bump */
  readonly innerFullHash: string | undefined
  readonly inner: Inner
  readonly bump: FeeBump | undefined
  readonly feeSource: string
  /** the whole fee offered, stroops */
  readonly fee: bigint
  /** the part of it that buys Soroban resources, stroops; 0 for classic */
  readonly resourceFee: bigint
  /** operations that pay an inclusion fee: a fee bump counts as one more */
  readonly operations: number
}

const SOROBAN = new Set(['invokeHostFunction', 'extendFootprintTtl', 'restoreFootprint'])

/** What is not exactly one TransactionEnvelope in base64. */
export class UnreadableEnvelope extends Error {}

/**
 * Decodes a base64 TransactionEnvelope; V0 becomes V1, as stellar-core does before any check.
 * @throws UnreadableEnvelope
 */
export function readEnvelope(text: string, networkId: Uint8Array): Envelope {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) throw new UnreadableEnvelope('not canonical base64')
  const decoded = decodeEnvelope(bytes)
  if (decoded.type === 'envelopeTypeTxFeeBump') return readFeeBump(text, bytes, decoded, networkId)
  if (decoded.type === 'envelopeTypeTx') return readPlain(text, bytes, decoded, networkId)
  const upgraded = upgrade(decoded.v0)
  const again = upgraded.toXdr()
  return readPlain(Buffer.from(again).toString('base64'), again, upgraded, networkId)
}

function decodeEnvelope(bytes: Uint8Array): xdr.TransactionEnvelope {
  try {
    return xdr.TransactionEnvelope.fromXdr(bytes)
  } catch (cause) {
    throw new UnreadableEnvelope('not a transaction envelope', { cause })
  }
}

/** The fee offered for a place in the ledger, without the resource fee. May be negative. */
export function inclusionFee(envelope: Envelope): bigint {
  return envelope.fee - envelope.resourceFee
}

type Plain = Extract<xdr.TransactionEnvelope, { type: 'envelopeTypeTx' }>
type Bumped = Extract<xdr.TransactionEnvelope, { type: 'envelopeTypeTxFeeBump' }>

function readPlain(text: string, bytes: Uint8Array, envelope: Plain, networkId: Uint8Array): Envelope {
  const inner = readInner(envelope.v1, bytes.length, networkId)
  return {
    xdr: text,
    envelope,
    fullHash: sha256(bytes).toString('hex'),
    hash: Buffer.from(inner.hash).toString('hex'),
    innerHash: undefined,
    innerFullHash: undefined,
    inner,
    bump: undefined,
    feeSource: inner.source,
    fee: BigInt(inner.tx.fee),
    resourceFee: inner.isSoroban ? (inner.soroban?.resourceFee ?? 0n) : 0n,
    operations: Math.max(1, inner.tx.operations.length),
  }
}

function readFeeBump(text: string, bytes: Uint8Array, envelope: Bumped, networkId: Uint8Array): Envelope {
  const { tx, signatures } = envelope.feeBump
  const innerBytes = xdr.TransactionEnvelope.envelopeTypeTx(tx.innerTx.value).toXdr()
  const inner = readInner(tx.innerTx.value, innerBytes.length, networkId)
  const hash = sha256(networkId, envelopeType(5), tx.toXdr())
  return {
    xdr: text,
    envelope,
    fullHash: sha256(bytes).toString('hex'),
    hash: hash.toString('hex'),
    innerHash: Buffer.from(inner.hash).toString('hex'),
    innerFullHash: sha256(innerBytes).toString('hex'),
    inner,
    bump: { hash, signatures, verified: new Map(), fee: tx.fee },
    feeSource: baseAccountId(tx.feeSource),
    fee: tx.fee,
    resourceFee: inner.isSoroban ? (inner.soroban?.resourceFee ?? 0n) : 0n,
    operations: inner.tx.operations.length + 1,
  }
}

function readInner(envelope: xdr.TransactionV1Envelope, size: number, networkId: Uint8Array): Inner {
  const { tx, signatures } = envelope
  return {
    tx,
    hash: sha256(networkId, envelopeType(2), tx.toXdr()),
    signatures,
    verified: new Map(),
    source: baseAccountId(tx.sourceAccount),
    size,
    isSoroban: tx.operations.some((operation) => SOROBAN.has(operation.body.type)),
    soroban: tx.ext.type === 'sorobanData' ? tx.ext.sorobanData : undefined,
  }
}

function upgrade({ tx, signatures }: xdr.TransactionV0Envelope): Plain {
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

function envelopeType(value: number): Uint8Array {
  return new Uint8Array([0, 0, 0, value])
}

function sha256(...parts: Uint8Array[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
