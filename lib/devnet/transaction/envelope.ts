import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import { baseAccount } from '#lib/stellar/node/envelope.ts'
import { decodeEnvelope, type FeeBumpEnvelope, type PlainEnvelope, UnreadableEnvelope } from './envelope-decoding.ts'

/**
 * A signed payload, its signatures, and the cached results of their verification, which costs more than all other
 * checks.
 */
export interface Signed {
  /** the signed hash, 32 bytes */
  readonly hash: Uint8Array
  readonly signatures: readonly xdr.DecoratedSignature[]
  /** verdicts by `<signature index>:<signer key>` */
  readonly verified: Map<string, boolean>
}

/** The transaction itself: a plain envelope, or the inner one of a fee bump. */
export interface Inner extends Signed {
  readonly tx: xdr.Transaction
  /** strkey of the sequence source */
  readonly source: string
  /** size of its V1 envelope in bytes */
  readonly size: number
  /** by its first operation, like core, although a transaction that mixes them is malformed */
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
  /** hex SHA-256 of the envelope with its signatures; the queue bans envelopes by this hash */
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
  /** the whole fee bid in stroops */
  readonly fee: bigint
  /** the resource fee in stroops; 0 for classic */
  readonly resourceFee: bigint
  /** operations that pay an inclusion fee; a fee bump counts one more */
  readonly operations: number
}

const SOROBAN = new Set(['invokeHostFunction', 'extendFootprintTtl', 'restoreFootprint'])

export const isSorobanOperation = ({ body }: xdr.Operation): boolean => SOROBAN.has(body.type)

/**
 * Decodes a base64 TransactionEnvelope; V0 becomes V1, as stellar-core does before any check.
 * @throws UnreadableEnvelope
 */
export function readEnvelope(text: string, networkId: Uint8Array): Envelope {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) throw new UnreadableEnvelope('not canonical base64')
  const envelope = decodeEnvelope(bytes)
  if (envelope.type === 'envelopeTypeTxFeeBump') return readFeeBump(text, bytes, envelope, networkId)
  return readPlain(envelope, networkId)
}

/** The inclusion fee bid: the fee without the resource fee. May be negative. */
export function inclusionFee(envelope: Envelope): bigint {
  return envelope.fee - envelope.resourceFee
}

function readPlain(envelope: PlainEnvelope, networkId: Uint8Array): Envelope {
  const bytes = envelope.toXdr()
  const inner = readInner(envelope.v1, bytes.length, networkId)
  return {
    xdr: Buffer.from(bytes).toString('base64'),
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

function readFeeBump(text: string, bytes: Uint8Array, envelope: FeeBumpEnvelope, networkId: Uint8Array): Envelope {
  const { tx, signatures } = envelope.feeBump
  const innerBytes = xdr.TransactionEnvelope.envelopeTypeTx(tx.innerTx.value).toXdr()
  const inner = readInner(tx.innerTx.value, innerBytes.length, networkId)
  const hash = sha256(networkId, envelopeType(5), tx.toXdr())
  return {
    xdr: text,
    fullHash: sha256(bytes).toString('hex'),
    hash: hash.toString('hex'),
    innerHash: Buffer.from(inner.hash).toString('hex'),
    innerFullHash: sha256(innerBytes).toString('hex'),
    inner,
    bump: { hash, signatures, verified: new Map(), fee: tx.fee },
    feeSource: baseAccount(tx.feeSource),
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
    source: baseAccount(tx.sourceAccount),
    size,
    isSoroban: tx.operations.slice(0, 1).some(isSorobanOperation),
    soroban: tx.ext.type === 'sorobanData' ? tx.ext.sorobanData : undefined,
  }
}

function envelopeType(value: number): Uint8Array {
  return new Uint8Array([0, 0, 0, value])
}

function sha256(...parts: Uint8Array[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
