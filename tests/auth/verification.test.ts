import { createHash } from 'node:crypto'
import {
  Account,
  Asset,
  type Keypair,
  Memo,
  MuxedAccount,
  Operation,
  Transaction,
  TransactionBuilder,
  WebAuth,
  xdr,
} from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { checkClientSignatures, readChallenge } from '#lib/auth/sep10/verification.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { type AccountAuth, authOf } from '#lib/stellar/account.ts'
import { accountEntry, signerKey } from '../support/fake-rpc.ts'
import {
  craftChallenge,
  later,
  NONCE,
  NOW,
  NOW_SECONDS,
  nonceOperation,
  pair,
  sep10,
  signedChallenge,
  webAuthDomain,
} from './challenges.ts'

const server = sep10.signer
const [alice, bob, carol, dave] = [pair('alice'), pair('bob'), pair('carol'), pair('dave')]
const address = alice.publicKey()
const ed = (signer: Keypair, weight: number) => ({ key: signerKey(signer), weight })
const funded = (given: Parameters<typeof accountEntry>[1] = {}) => authOf(address, accountEntry(address, given))
const UNFUNDED: AccountAuth = { exists: false }
const twoOfThree = funded({ thresholds: [1, 2, 2, 2], signers: [ed(bob, 1), ed(carol, 1)] })

/** Our verdict: nothing, or the reason of the refusal. Anything but a 400 is a failure of the test. */
function ourVerdict(transaction: string, auth: AccountAuth, now: Date): string | undefined {
  try {
    checkClientSignatures(sep10, readChallenge(sep10, transaction, now), auth)
    return undefined
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown
    expect(thrown.code).toBe(thrown.message.includes('expired') ? 'challenge-expired' : 'challenge-invalid')
    expect(thrown.message).toMatch(/^invalid challenge: /)
    return thrown.message
  }
}

/** The SDK's verdict on the same, with the signers and the threshold that the account has. */
function sdkVerdict(transaction: string, auth: AccountAuth, now: Date): boolean {
  vi.setSystemTime(now)
  const who = [server.publicKey(), sep10.networkPassphrase] as const
  const domains = [sep10.homeDomain, sep10.webAuthDomain] as const
  try {
    const { clientAccountID } = WebAuth.readChallengeTx(transaction, ...who, ...domains)
    if (auth.exists) {
      const summary = auth.signers.map((signer) => ({ ...signer, type: 'ed25519_public_key' as const }))
      WebAuth.verifyChallengeTxThreshold(transaction, ...who, auth.thresholds.medium, summary, ...domains)
    } else WebAuth.verifyChallengeTxSigners(transaction, ...who, [clientAccountID], ...domains)
    return true
  } catch {
    return false
  }
}

beforeAll(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterAll(() => {
  vi.useRealTimers()
})

interface Case {
  name: string
  /** base64 XDR, or the transaction */
  given: string | Transaction
  auth?: AccountAuth
  now?: Date
  /** nothing: let in; else words of the reason */
  refused?: string
  /** where we are stricter on purpose */
  sdkAccepts?: true
}

const fixed = (signers: Keypair[], account = address) => signedChallenge(account, signers, NOW, new Uint8Array(48))
const good = fixed([alice])

/** The same transaction in the envelope form of before protocol 13. */
function asV0(text: string): string {
  const envelope = xdr.TransactionEnvelope.fromXdr(text, 'base64')
  if (envelope.type !== 'envelopeTypeTx') throw new Error('not a v1 envelope')
  const { tx, signatures } = envelope.v1
  if (tx.cond.type !== 'precondTime') throw new Error('no time bounds')
  const v0 = new xdr.TransactionV0({
    sourceAccountEd25519: server.rawPublicKey(),
    fee: tx.fee,
    seqNum: tx.seqNum,
    timeBounds: tx.cond.value,
    memo: tx.memo,
    operations: tx.operations,
    ext: xdr.TransactionV0Ext.v0(),
  })
  return xdr.TransactionEnvelope.envelopeTypeTxV0(new xdr.TransactionV0Envelope({ tx: v0, signatures })).toXdr('base64')
}

/** The challenge with its signatures put through `change`. */
function withSignatures(
  text: string,
  change: (signatures: xdr.DecoratedSignature[]) => xdr.DecoratedSignature[],
): string {
  const envelope = xdr.TransactionEnvelope.fromXdr(text, 'base64')
  if (envelope.type !== 'envelopeTypeTx') throw new Error('not a v1 envelope')
  const { tx, signatures } = envelope.v1
  const changed = new xdr.TransactionV1Envelope({ tx, signatures: change([...signatures]) })
  return xdr.TransactionEnvelope.envelopeTypeTx(changed).toXdr('base64')
}

function feeBump(text: string): string {
  const inner = new Transaction(text, sep10.networkPassphrase)
  return TransactionBuilder.buildFeeBumpTransaction(server, '200', inner, sep10.networkPassphrase).toXdr()
}

/** S + L: the same signature in a second form. */
function malleated([first, second, ...rest]: xdr.DecoratedSignature[]): xdr.DecoratedSignature[] {
  if (!first || !second) throw new Error('too few signatures')
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const bytes = Buffer.from(second.signature.toBytes())
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`) + order
  Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse().copy(bytes, 32)
  return [first, new xdr.DecoratedSignature({ hint: second.hint, signature: new Uint8Array(bytes) }), ...rest]
}

const muxedAlice = new MuxedAccount(new Account(address, '0'), '7').accountId()
const preimage = new Uint8Array(32).fill(7)
const hashX = createHash('sha256').update(preimage).digest()
const hashXSigner = { key: xdr.SignerKey.signerKeyTypeHashX(hashX), weight: 5 }
const preAuthSigner = {
  key: xdr.SignerKey.signerKeyTypePreAuthTx(new Transaction(good, sep10.networkPassphrase).hash()),
  weight: 5,
}
const preimageSignature = new xdr.DecoratedSignature({ hint: hashX.subarray(28), signature: preimage })

const accepted: Case[] = [
  { name: 'an account that is not funded, by its master key', given: good, auth: UNFUNDED },
  { name: 'a funded account, by its master key', given: good },
  {
    name: 'a signer at the threshold',
    given: fixed([bob]),
    auth: funded({ thresholds: [1, 0, 5, 0], signers: [ed(bob, 5)] }),
  },
  {
    name: 'master key off, another signer',
    given: fixed([bob]),
    auth: funded({ thresholds: [0, 0, 0, 0], signers: [ed(bob, 1)] }),
  },
  { name: 'two of three', given: fixed([carol, alice]), auth: twoOfThree },
  { name: 'all three', given: fixed([carol, alice, bob]), auth: twoOfThree },
  { name: 'weight and threshold 255', given: good, auth: funded({ thresholds: [255, 255, 255, 255] }) },
  {
    name: 'a weight over 255 counts as 255',
    given: fixed([bob]),
    auth: funded({ thresholds: [1, 0, 255, 0], signers: [ed(bob, 300)] }),
  },
  { name: 'a v0 envelope', given: asV0(good) },
  { name: 'URL-safe base64', given: good.replaceAll('+', '-').replaceAll('/', '_') },
  { name: 'base64 without padding, in lines', given: good.replace(/=+$/, '').replace(/.{64}/g, '$&\n') },
  { name: 'the client signed before the server', given: withSignatures(good, (all) => all.toReversed()) },
  { name: 'its last second', given: good, now: later(300) },
  { name: 'its first second', given: good, now: NOW },
  {
    name: 'another operation of this server',
    given: craftChallenge(
      {
        operations: [
          nonceOperation(address),
          webAuthDomain(),
          Operation.manageData({ source: server.publicKey(), name: 'x', value: 'y' }),
        ],
      },
      [alice],
    ),
  },
]

const refused: Case[] = [
  { name: 'no client signature, funded with thresholds of 0', given: fixed([]), refused: 'not signed by the account' },
  { name: 'no client signature, not funded', given: fixed([]), auth: UNFUNDED, refused: 'not signed by the account' },
  { name: 'a stranger', given: fixed([bob]), refused: 'not of a signer' },
  {
    name: 'a stranger for an account that is not funded',
    given: fixed([bob]),
    auth: UNFUNDED,
    refused: 'not of a signer',
  },
  { name: 'below the threshold', given: good, auth: twoOfThree, refused: 'weigh 1 of the 2' },
  {
    name: 'one below the boundary',
    given: good,
    auth: funded({ thresholds: [254, 0, 255, 0] }),
    refused: 'weigh 254 of the 255',
  },
  { name: 'the same signature twice', given: fixed([alice, alice]), auth: twoOfThree, refused: 'not of a signer' },
  { name: 'a signature too many', given: fixed([alice, dave]), refused: 'not of a signer' },
  {
    name: 'not funded, and a signature too many',
    given: fixed([alice, bob]),
    auth: UNFUNDED,
    refused: 'not of a signer',
  },
  {
    name: 'master key off, thresholds 0',
    given: good,
    auth: funded({ thresholds: [0, 0, 0, 0], signers: [ed(bob, 1)] }),
    refused: 'not of a signer',
  },
  {
    name: 'a signer of weight 0',
    given: fixed([bob]),
    auth: funded({ thresholds: [1, 0, 0, 0], signers: [ed(bob, 0)] }),
    refused: 'not of a signer',
  },
  {
    name: 'a hashX signer alone',
    given: withSignatures(fixed([]), (all) => [...all, preimageSignature]),
    auth: funded({ thresholds: [0, 0, 0, 0], signers: [hashXSigner] }),
    refused: 'not of a signer',
  },
  {
    name: 'a pre-authorised hash alone',
    given: good,
    auth: funded({ thresholds: [0, 0, 0, 0], signers: [preAuthSigner] }),
    refused: 'not of a signer',
  },
  {
    name: "the server's key as signer of the account",
    given: fixed([]),
    auth: funded({ signers: [ed(server, 10)] }),
    refused: 'not signed by the account',
  },
  {
    name: "the server's key as signer, and its signature twice",
    given: fixed([server]),
    auth: funded({ signers: [ed(server, 10)] }),
    refused: 'not of a signer',
  },
  {
    name: "the server's weight does not help",
    given: fixed([alice, server]),
    auth: funded({ thresholds: [1, 0, 5, 0], signers: [ed(server, 10)] }),
    refused: 'not of a signer',
  },
  {
    name: "the account is the server's",
    given: craftChallenge({ account: server.publicKey() }, []),
    auth: UNFUNDED,
    refused: "server's own signing key",
  },
  {
    name: "the account is the server's, signed twice",
    given: craftChallenge({ account: server.publicKey() }, [server]),
    auth: UNFUNDED,
    refused: "server's own signing key",
  },
  {
    name: 'another network',
    given: craftChallenge({ passphrase: 'Test SDF Network ; September 2015' }, [alice]),
    refused: 'another network',
  },
  { name: 'another server', given: craftChallenge({ server: dave }, [alice]), refused: 'source is not this server' },
  {
    name: 'our source, signed by another server',
    given: craftChallenge({ server: dave, source: server.publicKey() }, [alice]),
    refused: 'not signed by this server',
  },
  {
    name: 'another home domain',
    given: craftChallenge({ name: 'evil.example auth' }, [alice]),
    refused: 'it is not for',
  },
  {
    name: 'the home domain and more',
    given: craftChallenge({ name: `${sep10.homeDomain}.evil auth` }, [alice]),
    refused: 'it is not for',
  },
  {
    name: 'another web_auth_domain',
    given: craftChallenge({ operations: [nonceOperation(address), webAuthDomain('evil.example')] }, [alice]),
    refused: 'web_auth_domain is not',
  },
  {
    name: 'a second web_auth_domain that differs',
    given: craftChallenge({ operations: [nonceOperation(address), webAuthDomain(), webAuthDomain('evil.example')] }, [
      alice,
    ]),
    refused: 'web_auth_domain is not',
  },
  {
    name: 'web_auth_domain of the client',
    given: craftChallenge({ operations: [nonceOperation(address), webAuthDomain(sep10.webAuthDomain, address)] }, [
      alice,
    ]),
    refused: 'not of this server',
  },
  {
    name: 'web_auth_domain without value',
    given: craftChallenge({ operations: [nonceOperation(address), webAuthDomain(null)] }, [alice]),
    refused: 'web_auth_domain is not',
  },
  {
    name: 'no web_auth_domain',
    given: craftChallenge({ operations: [nonceOperation(address)] }, [alice]),
    refused: 'no web_auth_domain',
    sdkAccepts: true,
  },
  { name: 'a sequence number', given: craftChallenge({ sequence: '0' }, [alice]), refused: 'sequence number' },
  {
    name: 'a payment',
    given: craftChallenge(
      {
        operations: [
          Operation.payment({ source: address, destination: server.publicKey(), asset: Asset.native(), amount: '1' }),
          webAuthDomain(),
        ],
      },
      [alice],
    ),
    refused: 'other than manageData',
  },
  {
    name: 'a payment behind',
    given: craftChallenge(
      {
        operations: [
          nonceOperation(address),
          webAuthDomain(),
          Operation.payment({ source: server.publicKey(), destination: address, asset: Asset.native(), amount: '1' }),
        ],
      },
      [alice],
    ),
    refused: 'other than manageData',
  },
  { name: 'no operation', given: craftChallenge({ operations: [] }, [alice]), refused: 'or none' },
  {
    name: 'a first operation without source',
    given: craftChallenge({ operations: [nonceOperation(), webAuthDomain()] }, [alice]),
    refused: 'no source account',
  },
  { name: 'no nonce', given: craftChallenge({ value: null }, [alice]), refused: 'no nonce' },
  { name: 'a short nonce', given: craftChallenge({ value: NONCE.slice(4) }, [alice]), refused: 'no nonce' },
  { name: 'a nonce that is no base64', given: craftChallenge({ value: '?'.repeat(64) }, [alice]), refused: 'no nonce' },
  { name: 'a fee bump', given: feeBump(good), refused: 'fee-bump' },
  { name: 'tampered: another account', given: swapAccount(good, bob), refused: 'not signed by this server' },
  {
    name: 'a muxed account',
    given: craftChallenge({ account: muxedAlice }, [alice]),
    refused: 'muxed',
    sdkAccepts: true,
  },
  { name: 'a memo', given: craftChallenge({ memo: Memo.id('1') }, [alice]), refused: 'memo', sdkAccepts: true },
  { name: 'a text memo', given: craftChallenge({ memo: Memo.text('1') }, [alice]), refused: 'memo' },
  {
    name: 'a client_domain, signed by all',
    given: craftChallenge(
      {
        operations: [
          nonceOperation(address),
          webAuthDomain(),
          Operation.manageData({ source: dave.publicKey(), name: 'client_domain', value: 'wallet.example' }),
        ],
      },
      [alice, dave],
    ),
    refused: 'not of this server',
    sdkAccepts: true,
  },
  {
    name: 'a client_domain, not signed',
    given: craftChallenge(
      {
        operations: [
          nonceOperation(address),
          webAuthDomain(),
          Operation.manageData({ source: dave.publicKey(), name: 'client_domain', value: 'wallet.example' }),
        ],
      },
      [alice],
    ),
    refused: 'not of this server',
  },
  {
    name: 'a client_domain that is this server’s own',
    given: craftChallenge(
      {
        operations: [
          nonceOperation(address),
          webAuthDomain(),
          Operation.manageData({ source: server.publicKey(), name: 'client_domain', value: 'wallet.example' }),
        ],
      },
      [alice],
    ),
    refused: 'it has a client_domain',
  },
  {
    name: 'a client_domain in place of the client',
    given: craftChallenge(
      {
        operations: [
          nonceOperation(address),
          webAuthDomain(),
          Operation.manageData({ source: dave.publicKey(), name: 'client_domain', value: 'wallet.example' }),
        ],
      },
      [dave],
    ),
    refused: 'not of this server',
  },
  { name: 'one second late', given: good, now: later(301), refused: 'expired', sdkAccepts: true },
  { name: 'one second early', given: good, now: later(-1), refused: 'not valid yet', sdkAccepts: true },
  { name: 'ten minutes late', given: good, now: later(601), refused: 'expired' },
  {
    name: 'no end',
    given: craftChallenge({ bounds: { minTime: NOW_SECONDS, maxTime: 0 } }, [alice]),
    refused: 'no time bounds',
  },
  { name: 'S + L', given: withSignatures(good, malleated), refused: 'not of a signer' },
  {
    name: 'an empty signature',
    given: withSignatures(good, (all) => [
      ...all.slice(0, 1),
      new xdr.DecoratedSignature({ hint: alice.signatureHint(), signature: new Uint8Array() }),
    ]),
    refused: 'not of a signer',
  },
  { name: 'no signature at all', given: withSignatures(good, () => []), refused: 'not signed by this server' },
  {
    name: 'the client alone',
    given: withSignatures(good, (all) => all.slice(1)),
    refused: 'not signed by this server',
  },
  { name: 'garbage', given: 'garbage!', refused: 'not a base64' },
  { name: 'nothing', given: '', refused: 'not a base64' },
  { name: 'truncated', given: good.slice(0, 300), refused: 'not a base64' },
  {
    name: 'bytes behind',
    given: Buffer.concat([Buffer.from(good, 'base64'), Buffer.alloc(4)]).toString('base64'),
    refused: 'not a base64',
  },
  { name: 'more than 8 KB', given: `${good}${'\n'.repeat(8193)}`, refused: 'larger', sdkAccepts: true },
]

/** The challenge for somebody else, under the signatures of the first. */
function swapAccount(text: string, other: Keypair): string {
  const bytes = Buffer.from(text, 'base64')
  Buffer.from(other.rawPublicKey()).copy(bytes, bytes.indexOf(alice.rawPublicKey()))
  return bytes.toString('base64')
}

describe.each([
  ['lets in', accepted],
  ['refuses', refused],
])('%s', (_title, cases) => {
  test.each(cases)('$name', ({ given, auth = funded(), now = NOW, refused, sdkAccepts }) => {
    const text = typeof given === 'string' ? given : given.toXdr()
    const verdict = ourVerdict(text, auth, now)
    if (refused === undefined) expect(verdict).toBeUndefined()
    else expect(verdict).toContain(refused)
    expect(sdkVerdict(text, auth, now)).toBe(refused === undefined || sdkAccepts === true)
  })
})

test('every encoding of a challenge has one hash, and the account and end of the challenge', () => {
  const hash = new Transaction(good, sep10.networkPassphrase).hash()
  for (const { given, now = NOW } of accepted.slice(8, 13)) {
    expect(readChallenge(sep10, String(given), now)).toMatchObject({ hash, account: address, expiresAt: later(300) })
  }
})
