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
import { Refusal } from '#lib/refusal/refusal.ts'
import { type AccountAuth, authOf } from '#lib/stellar/account.ts'
import { accountEntry, signerKey } from '../support/fake-rpc.ts'
import {
  asV0,
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
  withSignatures,
} from './challenges.ts'

const server = sep10.signer
const [alice, bob, carol, dave] = [pair('alice'), pair('bob'), pair('carol'), pair('dave')]
const address = alice.publicKey()
const ed = (signer: Keypair, weight: number) => ({ key: signerKey(signer), weight })
const funded = (fields: Parameters<typeof accountEntry>[1] = {}) => authOf(address, accountEntry(address, fields))
const UNFUNDED: AccountAuth = { exists: false }
const twoOfThree = funded({ thresholds: [1, 2, 2, 2], signers: [ed(bob, 1), ed(carol, 1)] })

/** The service's verdict: undefined, or the reason for the refusal. Any status other than 400 fails the test. */
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

/** The SDK's verdict on the same challenge, with the account's signers and threshold. */
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

/** The presented challenge: base64 XDR, or the transaction. */
type Presented = string | Transaction

interface Case {
  challenge: Presented
  auth?: AccountAuth
  now?: Date
  /** the SDK accepts this, but the service deliberately refuses it */
  sdkAccepts?: true
}

const fixed = (signers: Keypair[], account = address) => signedChallenge(account, signers, NOW, new Uint8Array(48))
const good = fixed([alice])
const crafted = (fields: Parameters<typeof craftChallenge>[0], ...signers: Keypair[]) =>
  craftChallenge(fields, [alice, ...signers])
/** A challenge with these operations after the nonce's. */
const followedBy = (...operations: xdr.Operation[]) => crafted({ operations: [nonceOperation(address), ...operations] })
const clientDomain = ({ source, signers }: { source: Keypair; signers: Keypair[] }) => {
  const clientDomain = Operation.manageData({
    source: source.publicKey(),
    name: 'client_domain',
    value: 'wallet.example',
  })
  return craftChallenge({ operations: [nonceOperation(address), webAuthDomain(), clientDomain] }, signers)
}
const payment = (source: string, destination: string) =>
  Operation.payment({ source, destination, asset: Asset.native(), amount: '1' })

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

/** The challenge with its account replaced, under the signatures of the first account. */
function swapAccount(text: string, other: Keypair): string {
  const bytes = Buffer.from(text, 'base64')
  Buffer.from(other.rawPublicKey()).copy(bytes, bytes.indexOf(alice.rawPublicKey()))
  return bytes.toString('base64')
}

const muxedAlice = new MuxedAccount(new Account(address, '0'), '7').accountId()
const preimage = new Uint8Array(32).fill(7)
const hashX = createHash('sha256').update(preimage).digest()
const hashXSigner = { key: xdr.SignerKey.signerKeyTypeHashX(hashX), weight: 5 }
const goodHash = new Transaction(good, sep10.networkPassphrase).hash()
const preAuthSigner = { key: xdr.SignerKey.signerKeyTypePreAuthTx(goodHash), weight: 5 }
const preimageSignature = new xdr.DecoratedSignature({ hint: hashX.subarray(28), signature: preimage })
const emptySignature = new xdr.DecoratedSignature({ hint: alice.signatureHint(), signature: new Uint8Array() })

/** A challenge in each of its encodings. */
const ENCODINGS: Record<string, string> = {
  'a v0 envelope': asV0(good),
  'URL-safe base64': good.replaceAll('+', '-').replaceAll('/', '_'),
  'base64 without padding, in lines': good.replace(/=+$/, '').replace(/.{64}/g, '$&\n'),
  'the client signed before the server': withSignatures(good, (all) => all.toReversed()),
}

const ACCEPTED: Record<string, Presented | Case> = {
  ...ENCODINGS,
  'an account that is not funded, by its master key': { challenge: good, auth: UNFUNDED },
  'a funded account, by its master key': good,
  'a signer at the threshold': {
    challenge: fixed([bob]),
    auth: funded({ thresholds: [1, 0, 5, 0], signers: [ed(bob, 5)] }),
  },
  'master key off, another signer': {
    challenge: fixed([bob]),
    auth: funded({ thresholds: [0, 0, 0, 0], signers: [ed(bob, 1)] }),
  },
  'two of three': { challenge: fixed([carol, alice]), auth: twoOfThree },
  'all three': { challenge: fixed([carol, alice, bob]), auth: twoOfThree },
  'weight and threshold 255': { challenge: good, auth: funded({ thresholds: [255, 255, 255, 255] }) },
  'a weight over 255 counts as 255': {
    challenge: fixed([bob]),
    auth: funded({ thresholds: [1, 0, 255, 0], signers: [ed(bob, 300)] }),
  },
  'its last second': { challenge: good, now: later(300) },
  'another operation of this server': followedBy(
    webAuthDomain(),
    Operation.manageData({ source: server.publicKey(), name: 'x', value: 'y' }),
  ),
}

/** Challenges that are refused, by a part of the reason. */
const REFUSED: Record<string, Record<string, Presented | Case>> = {
  'not signed by the account': {
    'no client signature, funded with thresholds of 0': fixed([]),
    'no client signature, not funded': { challenge: fixed([]), auth: UNFUNDED },
    "the server's key as signer of the account": { challenge: fixed([]), auth: funded({ signers: [ed(server, 10)] }) },
  },
  'two signatures by one signer': {
    'the same signature twice': { challenge: fixed([alice, alice]), auth: twoOfThree },
  },
  'not by a signer': {
    'a stranger': fixed([bob]),
    'a stranger for an account that is not funded': { challenge: fixed([bob]), auth: UNFUNDED },
    'an extra signature': fixed([alice, dave]),
    'not funded, with an extra signature': { challenge: fixed([alice, bob]), auth: UNFUNDED },
    'master key off, thresholds 0': {
      challenge: good,
      auth: funded({ thresholds: [0, 0, 0, 0], signers: [ed(bob, 1)] }),
    },
    'a signer of weight 0': {
      challenge: fixed([bob]),
      auth: funded({ thresholds: [1, 0, 0, 0], signers: [ed(bob, 0)] }),
    },
    'a hashX signer alone': {
      challenge: withSignatures(fixed([]), (all) => [...all, preimageSignature]),
      auth: funded({ thresholds: [0, 0, 0, 0], signers: [hashXSigner] }),
    },
    'a pre-authorised hash alone': {
      challenge: good,
      auth: funded({ thresholds: [0, 0, 0, 0], signers: [preAuthSigner] }),
    },
    "the server's key as signer, and its signature twice": {
      challenge: fixed([server]),
      auth: funded({ signers: [ed(server, 10)] }),
    },
    "the server's weight does not help": {
      challenge: fixed([alice, server]),
      auth: funded({ thresholds: [1, 0, 5, 0], signers: [ed(server, 10)] }),
    },
    'S + L': withSignatures(good, malleated),
    'an empty signature': withSignatures(good, (all) => [...all.slice(0, 1), emptySignature]),
  },
  'have weight 1, but the account requires 2': { 'below the threshold': { challenge: good, auth: twoOfThree } },
  'have weight 254, but the account requires 255': {
    'one below': { challenge: good, auth: funded({ thresholds: [254, 0, 255, 0] }) },
  },
  "server's own signing key": {
    "the account is the server's": { challenge: craftChallenge({ account: server.publicKey() }, []), auth: UNFUNDED },
    'signed twice': { challenge: craftChallenge({ account: server.publicKey() }, [server]), auth: UNFUNDED },
  },
  'another network': { 'of another passphrase': crafted({ passphrase: 'Test SDF Network ; September 2015' }) },
  'source is not this server': { 'another server': crafted({ server: dave }) },
  'not signed by this server': {
    'our source, signed by another server': crafted({ server: dave, source: server.publicKey() }),
    'tampered: another account': swapAccount(good, bob),
    'no signature at all': withSignatures(good, () => []),
    'the client alone': withSignatures(good, (all) => all.slice(1)),
  },
  'it is not for': {
    'another home domain': crafted({ name: 'evil.example auth' }),
    'the home domain with a suffix': crafted({ name: `${sep10.homeDomain}.evil auth` }),
  },
  'web_auth_domain is not': {
    'another web_auth_domain': followedBy(webAuthDomain('evil.example')),
    'a different second web_auth_domain': followedBy(webAuthDomain(), webAuthDomain('evil.example')),
    'web_auth_domain without value': followedBy(webAuthDomain(null)),
  },
  'whose source is not this server': {
    'web_auth_domain of the client': followedBy(webAuthDomain(sep10.webAuthDomain, address)),
    'a client_domain, signed by all': {
      challenge: clientDomain({ source: dave, signers: [alice, dave] }),
      sdkAccepts: true,
    },
    'a client_domain, not signed': clientDomain({ source: dave, signers: [alice] }),
    'a client_domain in place of the client': clientDomain({ source: dave, signers: [dave] }),
  },
  'it has a client_domain': { 'of this server': clientDomain({ source: server, signers: [alice] }) },
  'no web_auth_domain': { 'nothing after the nonce': { challenge: followedBy(), sdkAccepts: true } },
  'sequence number': { 'a sequence number': crafted({ sequence: '0' }) },
  'other than manageData': {
    'a payment': crafted({ operations: [payment(address, server.publicKey()), webAuthDomain()] }),
    'a payment after it': followedBy(webAuthDomain(), payment(server.publicKey(), address)),
  },
  'or none': { 'no operation': crafted({ operations: [] }) },
  'no source account': { 'in the first operation': crafted({ operations: [nonceOperation(), webAuthDomain()] }) },
  'no nonce': {
    'no value': crafted({ value: null }),
    'a short nonce': crafted({ value: NONCE.slice(4) }),
    'a nonce that is not base64': crafted({ value: '?'.repeat(64) }),
  },
  'fee-bump': { 'a fee bump': feeBump(good) },
  muxed: { 'a muxed account': { challenge: crafted({ account: muxedAlice }), sdkAccepts: true } },
  memo: {
    'an id': { challenge: crafted({ memo: Memo.id('1') }), sdkAccepts: true },
    'a text': crafted({ memo: Memo.text('1') }),
  },
  expired: {
    'one second late': { challenge: good, now: later(301), sdkAccepts: true },
    'ten minutes late': { challenge: good, now: later(601) },
  },
  'not valid yet': { 'one second early': { challenge: good, now: later(-1), sdkAccepts: true } },
  'no time bounds': { 'no end': crafted({ bounds: { minTime: NOW_SECONDS, maxTime: 0 } }) },
  'not a base64': {
    garbage: 'garbage!',
    nothing: '',
    truncated: good.slice(0, 300),
    'bytes behind': Buffer.concat([Buffer.from(good, 'base64'), Buffer.alloc(4)]).toString('base64'),
  },
  larger: { 'more than 8 KB': { challenge: `${good}${'\n'.repeat(8193)}`, sdkAccepts: true } },
}

const verdictsOn = (presented: Presented | Case) => {
  const isCase = typeof presented === 'object' && 'challenge' in presented
  const {
    challenge,
    auth = funded(),
    now = NOW,
    sdkAccepts,
  } = isCase ? presented : { challenge: presented, sdkAccepts: false }
  const text = typeof challenge === 'string' ? challenge : challenge.toXdr()
  return { ours: ourVerdict(text, auth, now), theirs: sdkVerdict(text, auth, now), sdkAccepts: sdkAccepts === true }
}

test.each(Object.entries(ACCEPTED))('accepts %s', (_, presented) => {
  expect(verdictsOn(presented)).toMatchObject({ ours: undefined, theirs: true })
})

describe.each(Object.entries(REFUSED))('refuses: %s', (reason, cases) => {
  test.each(Object.entries(cases))('%s', (_, presented) => {
    const { ours, theirs, sdkAccepts } = verdictsOn(presented)
    expect(ours).toContain(reason)
    expect(theirs).toBe(sdkAccepts)
  })
})

test.each(Object.entries(ENCODINGS))('returns the hash, account and expiry of the challenge for %s', (_, text) => {
  expect(readChallenge(sep10, text, NOW)).toMatchObject({
    hash: Buffer.from(goodHash),
    account: address,
    expiresAt: later(300),
  })
})
