import { Account, MuxedAccount, Transaction, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { Refusal } from '#lib/refusal/refusal.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import {
  authorize,
  PASSPHRASE,
  payer,
  signedTransfer,
  signTransaction,
  sponsor,
  transferCall,
  transferTransaction,
} from '../support/inner-transaction.ts'

const good = signedTransfer()
const bytes = Buffer.from(good, 'base64')

test('decodes a valid envelope with the SDK’s hash and source', () => {
  const inner = decodeInner(good, PASSPHRASE)
  const theirs = new Transaction(good, PASSPHRASE)
  expect(inner.hashHex).toBe(Buffer.from(theirs.hash()).toString('hex'))
  expect(Buffer.from(inner.hash).toString('hex')).toBe(inner.hashHex)
  expect(inner.source).toBe(theirs.source)
  expect(inner.envelope.toXdr('base64')).toBe(xdr.TransactionEnvelope.fromXdr(good, 'base64').value.toXdr('base64'))
})

test('uses the hash for this network', () => {
  const elsewhere = decodeInner(good, 'Test SDF Network ; September 2015')
  expect(elsewhere.hashHex).not.toBe(decodeInner(good, PASSPHRASE).hashHex)
})

test('resolves a muxed source to its base account', () => {
  const address = new MuxedAccount(new Account(payer.publicKey(), '0'), '7').accountId()
  expect(address.startsWith('M')).toBe(true)
  const sourceAccount = xdr.MuxedAccount.keyTypeMuxedEd25519(
    new xdr.MuxedEd25519Account({ id: 7n, ed25519: payer.rawPublicKey() }),
  )
  expect(decodeInner(signedTransfer({ tx: { sourceAccount } }), PASSPHRASE).source).toBe(payer.publicKey())
})

describe('other spellings of the same bytes are the same transaction', () => {
  const same: [string, string][] = [
    ['URL-safe alphabet', bytes.toString('base64url')],
    ['no padding', good.replace(/=+$/, '')],
    ['lines of 64 letters', good.replace(/.{64}/g, '$&\n')],
    ['blanks around it', ` ${good}\r\n`],
  ]
  test.each(same)('%s', (_, text) => {
    expect(text).not.toBe(good)
    expect(decodeInner(text, PASSPHRASE).hashHex).toBe(decodeInner(good, PASSPHRASE).hashHex)
  })
})

/** The same transaction in the envelope format before protocol 13. */
function asV0(): string {
  const { fee, seqNum, memo, operations, cond } = transferTransaction()
  const tx = new xdr.TransactionV0({
    sourceAccountEd25519: payer.rawPublicKey(),
    fee,
    seqNum,
    timeBounds: cond.type === 'precondTime' ? cond.timeBounds : null,
    memo,
    operations,
    ext: xdr.TransactionV0Ext.v0(),
  })
  return xdr.TransactionEnvelope.envelopeTypeTxV0(new xdr.TransactionV0Envelope({ tx, signatures: [] })).toXdr('base64')
}

function asFeeBump(): string {
  const inner = new Transaction(good, PASSPHRASE)
  const bump = TransactionBuilder.buildFeeBumpTransaction(sponsor, '100000', inner, PASSPHRASE)
  bump.sign(sponsor)
  return bump.toXdr()
}

/** A signed transfer of exactly `size` bytes. */
function ofSize(size: number): string {
  const auth = [authorize(transferCall({ args: [] }))]
  const sized = (length: number) => {
    const args = [xdr.ScVal.scvBytes(new Uint8Array(length))]
    return signedTransfer({ call: { args }, auth })
  }
  const frame = Buffer.from(sized(0), 'base64').length
  return sized(size - frame)
}

/** `depth` vectors, each in the other, as the first argument. */
function nested(depth: number): string {
  const marker = Buffer.from(xdr.ScVal.scvU64(0x0123_4567_89ab_cdefn).toXdr())
  const args = [xdr.ScVal.scvU64(0x0123_4567_89ab_cdefn)]
  const shell = Buffer.from(signedTransfer({ call: { args }, auth: [] }), 'base64')
  const at = shell.indexOf(marker)
  const vector = Buffer.from('000000100000000100000001', 'hex')
  const chain = Buffer.concat([...Array.from({ length: depth }, () => vector), marker])
  return Buffer.concat([shell.subarray(0, at), chain, shell.subarray(at + marker.length)]).toString('base64')
}

function tampered(change: (envelope: Buffer) => void): string {
  const copy = Buffer.from(bytes)
  change(copy)
  return copy.toString('base64')
}

const malformed: [string, string][] = [
  ['not base64', 'not base64!'],
  ['a character that is not base64', `${good.slice(0, 8)}!${good.slice(8)}`],
  ['another alphabet', good.replace('A', '.')],
  ['hex', bytes.toString('hex')],
  ['percent-encoded', encodeURIComponent(good)],
  ['a letter short', good.slice(0, -5)],
  ['nothing', ''],
  ['blanks', '    '],
  ['a letter', 'A'],
  ['padding alone', '===='],
  ['NUL', '\0'],
  ['letters beyond ASCII', 'ÀÀÀÀ'],
  ['only the envelope type', 'AAAAAg=='],
  ['the last byte missing', bytes.subarray(0, -1).toString('base64')],
  ['cut in the middle', bytes.subarray(0, 8_000).toString('base64')],
  ['a byte more', Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64')],
  ['four bytes more', Buffer.concat([bytes, Buffer.alloc(4)]).toString('base64')],
  ['two envelopes', Buffer.concat([bytes, bytes]).toString('base64')],
  ['an unknown envelope type', tampered((copy) => copy.writeUInt32BE(99, 0))],
  ['an unknown key type', tampered((copy) => copy.writeUInt32BE(1, 4))],
  ['the transaction without its envelope', transferTransaction().toXdr('base64')],
  ['a V0 envelope', asV0()],
  ['a fee bump', asFeeBump()],
  ['21 signatures', Buffer.concat([bytes.subarray(0, -76), twentyOne()]).toString('base64')],
  ['four bytes over the limit of the network, XDR having none between', ofSize(132_100)],
  ['far over the limit', 'A'.repeat(260_000)],
  ['400 values, each in the other', nested(400)],
  ['8,000 values, each in the other', nested(8_000)],
]

function twentyOne(): Buffer {
  const count = Buffer.from('00000015', 'hex')
  const signature = bytes.subarray(-72)
  return Buffer.concat([count, ...Array.from({ length: 21 }, () => signature)])
}

describe('malformed', () => {
  test.each(malformed)('%s', (_, text) => {
    const refusal = capture(() => decodeInner(text, PASSPHRASE))
    expect(refusal.code).toBe('signed-xdr-invalid')
    expect(refusal.message).toBe('malformed transaction XDR')
  })

  test('throws only a refusal for any truncation or changed byte in the head of an envelope', () => {
    for (let at = 0; at < 240; at += 1) {
      expect(capture(() => decodeInner(bytes.subarray(0, at).toString('base64'), PASSPHRASE)).code).toBe(
        'signed-xdr-invalid',
      )
      const text = tampered((copy) => copy.writeUInt8(copy.readUInt8(at) ^ 0xff, at))
      try {
        decodeInner(text, PASSPHRASE)
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(Refusal)
      }
    }
  })
})

test('decodes an envelope of the maximum size with 20 signatures', () => {
  const largest = ofSize(132_096)
  expect(Buffer.from(largest, 'base64')).toHaveLength(132_096)
  expect(decodeInner(largest, PASSPHRASE).source).toBe(payer.publicKey())
  const many = signTransaction(
    transferTransaction(),
    Array.from({ length: 20 }, () => payer),
  )
  expect(decodeInner(many, PASSPHRASE).envelope.signatures).toHaveLength(20)
})

function capture(act: () => unknown): Refusal {
  try {
    act()
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown
    throw thrown
  }
  throw new Error('nothing was thrown')
}
