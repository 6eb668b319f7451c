import { Account, Keypair, MuxedAccount, StrKey, Transaction, WebAuth, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test, vi } from 'vitest'
import { buildChallenge } from '#lib/auth/sep10/challenge.ts'
import { craftChallenge, NOW, NOW_SECONDS, pair, sep10 } from './challenges.ts'

const account = pair('alice').publicKey()

describe('a challenge', () => {
  const nonce = new Uint8Array(48).map((_, index) => index)
  const challenge = buildChallenge(sep10, { account }, NOW, nonce)
  const transaction = new Transaction(challenge.transaction, sep10.networkPassphrase)

  test('is returned with only the passphrase', () => {
    expect(Object.keys(challenge)).toEqual(['transaction', 'network_passphrase'])
    expect(challenge.network_passphrase).toBe(sep10.networkPassphrase)
  })

  test('has exactly the fields that SEP-10 requires', () => {
    expect(transaction.source).toBe(sep10.signer.publicKey())
    expect(transaction.sequence).toBe('0')
    expect(transaction.timeBounds).toEqual({ minTime: `${NOW_SECONDS}`, maxTime: `${NOW_SECONDS + 300}` })
    expect(transaction.memo.type).toBe('none')
    expect(transaction.operations).toEqual([
      {
        type: 'manageData',
        source: account,
        name: 'pay.example:8443 auth',
        value: new Uint8Array(Buffer.from(Buffer.from(nonce).toString('base64'))),
      },
      {
        type: 'manageData',
        source: sep10.signer.publicKey(),
        name: 'web_auth_domain',
        value: new Uint8Array(Buffer.from('pay.example:8443')),
      },
    ])
    expect(transaction.signatures).toHaveLength(1)
    expect(WebAuth.verifyTxSignedBy(transaction, sep10.signer.publicKey())).toBe(true)
  })

  test('equals the one that the SDK builds, byte for byte', () => {
    const value = Buffer.from(nonce).toString('base64')
    expect(challenge.transaction).toBe(craftChallenge({ account, value }, []).toXdr())
    vi.useFakeTimers({ now: NOW, toFake: ['Date'] })
    const theirs = WebAuth.buildChallengeTx(
      sep10.signer,
      account,
      sep10.homeDomain,
      300,
      sep10.networkPassphrase,
      sep10.webAuthDomain,
    )
    expect(blank(theirs)).toBe(blank(challenge.transaction))
    expect(
      WebAuth.readChallengeTx(
        challenge.transaction,
        sep10.signer.publicKey(),
        sep10.networkPassphrase,
        sep10.homeDomain,
        sep10.webAuthDomain,
      ),
    ).toMatchObject({ clientAccountID: account, matchedHomeDomain: sep10.homeDomain, memo: null })
    vi.useRealTimers()
  })

  test('has a new nonce each time', () => {
    const issued = Array.from({ length: 50 }, () => buildChallenge(sep10, { account }, NOW).transaction)
    expect(new Set(issued).size).toBe(50)
  })
})

/** The envelope without its random parts: the nonce, and therefore the signature. */
function blank(transaction: string): string {
  const envelope = xdr.TransactionEnvelope.fromXdr(transaction, 'base64')
  const [first] = new Transaction(transaction, sep10.networkPassphrase).operations
  if (first?.type !== 'manageData' || !first.value || envelope.type !== 'envelopeTypeTx')
    throw new Error('no challenge')
  return envelope.v1.tx.toXdr('hex').replace(Buffer.from(first.value).toString('hex'), 'nonce')
}

describe('refused with 400', () => {
  const muxed = new MuxedAccount(new Account(account, '0'), '7').accountId()
  const cases: [string, Parameters<typeof buildChallenge>[1], string][] = [
    ['no account', {}, 'account required'],
    ['an empty account', { account: '' }, 'account required'],
    ['garbage', { account: 'GARBAGE' }, 'account must be'],
    ['a muxed account', { account: muxed }, 'account must be'],
    ['a contract', { account: StrKey.encodeContract(new Uint8Array(32)) }, 'account must be'],
    ['a secret seed', { account: Keypair.fromRawEd25519Seed(new Uint8Array(32)).secret() }, 'account must be'],
    ['a wrong checksum', { account: `${account.slice(0, -1)}${account.endsWith('A') ? 'B' : 'A'}` }, 'account must be'],
    ["the server's own key", { account: sep10.signer.publicKey() }, "the server's own"],
    ['a memo', { account, memo: '1' }, 'memo is not supported'],
    ['another home domain', { account, home_domain: 'evil.example' }, 'home_domain'],
  ]
  test.each(cases)('%s', (_name, request, message) => {
    expect(() => buildChallenge(sep10, request, NOW)).toThrow(
      expect.objectContaining({
        code: expect.stringMatching(/-(required|invalid)$/),
        message: expect.stringContaining(message),
      }),
    )
  })

  test('does not echo a secret sent by mistake', () => {
    const secret = Keypair.fromRawEd25519Seed(new Uint8Array(32)).secret()
    expect(() => buildChallenge(sep10, { account: secret }, NOW)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(secret) }),
    )
  })
})

test.each([sep10.homeDomain, sep10.homeDomain.toUpperCase()])(
  'accepts the home domain of the service: %s',
  (domain) => {
    expect(() => buildChallenge(sep10, { account, home_domain: domain }, NOW)).not.toThrow()
  },
)
