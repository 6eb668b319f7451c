import { type FeeBumpTransaction, Keypair, Transaction, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import { wrapInFeeBump } from '#lib/transfers/fee-bump.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { PASSPHRASE, pair, payer, signedTransfer, sponsor } from '../support/inner-transaction.ts'

/** Inner fee and resource fee: odd ones, equal ones, the least and the largest. */
const FEES: [number, bigint][] = [
  [100, 0n],
  [101, 1n],
  [50_101, 50_001n],
  [90_560, 90_460n],
  [123_707, 123_457n],
  [999_999, 3n],
  [2_499_999, 2_499_899n],
  [2_500_000, 2_499_900n],
  [4_294_967_295, 90_460n],
]

const wrap = (signedXDR: string) => wrapInFeeBump(decodeInner(signedXDR, PASSPHRASE), sponsor, PASSPHRASE)
const transferOf = ([fee, resourceFee]: [number, bigint]) =>
  signedTransfer({ tx: { fee }, sorobanData: { resourceFee } })

function readBack(envelope: string): FeeBumpTransaction {
  const transaction = TransactionBuilder.fromXdr(envelope, PASSPHRASE)
  if (!('innerTransaction' in transaction)) throw new Error('not a fee bump')
  return transaction
}

describe.each(FEES)('an inner fee of %d with a resource fee of %d', (fee, resourceFee) => {
  const signedXDR = transferOf([fee, resourceFee])
  const bump = wrap(signedXDR)
  const theirs = readBack(bump.envelope)

  test('bids exactly twice the inner fee', () => {
    expect(bump.bid).toBe(2n * BigInt(fee))
    expect(theirs.fee).toBe(String(2 * fee))
  })

  test('has the SDK’s hash and signature', () => {
    expect(bump.hash).toBe(Buffer.from(theirs.hash()).toString('hex'))
    expect(theirs.feeSource).toBe(sponsor.publicKey())
    expect(theirs.signatures).toHaveLength(1)
    const [signature] = theirs.signatures
    const raw = signature?.signature.toBytes() ?? new Uint8Array(0)
    expect(Keypair.fromPublicKey(sponsor.publicKey()).verify(theirs.hash(), raw)).toBe(true)
    expect(Buffer.from(signature?.hint.toBytes() ?? []).equals(sponsor.signatureHint())).toBe(true)
  })

  test('contains the inner transaction unchanged, including signatures', () => {
    expect(theirs.innerTransaction.toXdr()).toBe(signedXDR)
    expect(theirs.innerTransaction.hash()).toEqual(new Transaction(signedXDR, PASSPHRASE).hash())
  })
})

test('bids less than the SDK’s builder, which bids three times the inner fee', () => {
  const inner = new Transaction(transferOf([90_560, 90_460n]), PASSPHRASE)
  const theirs = TransactionBuilder.buildFeeBumpTransaction(sponsor, inner.fee, inner, PASSPHRASE)
  expect(theirs.fee).toBe(String(2 * 90_560 + 90_460))
  expect(wrap(inner.toXdr()).bid).toBe(181_120n)
})

test('equals the envelope of the SDK’s builder with an adjusted fee', () => {
  const inner = new Transaction(transferOf([50_101, 50_001n]), PASSPHRASE)
  const theirs = TransactionBuilder.buildFeeBumpTransaction(sponsor, '25100.5', inner, PASSPHRASE)
  theirs.sign(sponsor)
  expect(wrap(inner.toXdr()).envelope).toBe(theirs.toXdr())
})

test('keeps several signatures of the inner transaction in order', () => {
  const signedXDR = signedTransfer({}, [pair('bob'), payer, pair('carol')])
  expect(readBack(wrap(signedXDR).envelope).innerTransaction.toXdr()).toBe(signedXDR)
})

test('wraps the same inner transaction in the same envelope each time', () => {
  expect(wrap(signedTransfer())).toEqual(wrap(signedTransfer()))
  const { envelope } = wrap(signedTransfer())
  expect(xdr.TransactionEnvelope.fromXdr(envelope, 'base64').type).toBe('envelopeTypeTxFeeBump')
})

test('decodes the fee bump of a muxed account with the SDK’s hashes', () => {
  const inner = decodeInner(signedTransfer({}, [pair('bob'), payer]), PASSPHRASE)
  const feeSource = xdr.MuxedAccount.keyTypeMuxedEd25519(
    new xdr.MuxedEd25519Account({ id: 7n, ed25519: sponsor.rawPublicKey() }),
  )
  const innerTx = xdr.FeeBumpTransactionInnerTx.envelopeTypeTx(inner.envelope)
  const tx = new xdr.FeeBumpTransaction({ feeSource, fee: 200n, innerTx, ext: xdr.FeeBumpTransactionExt.v0() })
  const signatures = [sponsor, payer].map((key) => key.signDecorated(inner.hash))
  const envelope = xdr.TransactionEnvelope.envelopeTypeTxFeeBump(new xdr.FeeBumpTransactionEnvelope({ tx, signatures }))
  const decoded = decodeEnvelope(envelope.toXdr('base64'), PASSPHRASE)
  const theirs = readBack(envelope.toXdr('base64'))
  expect(decoded.feeBump?.hashHex).toBe(Buffer.from(theirs.hash()).toString('hex'))
  expect(decoded.hashHex).toBe(Buffer.from(theirs.innerTransaction.hash()).toString('hex'))
  expect(decoded.feeBump?.feeSource).toBe(sponsor.publicKey())
  expect(Buffer.from(decoded.bytes)).toEqual(Buffer.from(inner.envelope.toXdr()))
})
