import { Keypair } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { type Bundle, encodeBundles, MAX_BUNDLES, parseBundles, ZK_PROOF_BYTES } from '#lib/disclosure/bundle.ts'
import type { OpenedPayment } from '#lib/disclosure/opening.ts'
import { circuitsFor, createRequest, parseRequest, type Question } from '#lib/disclosure/request.ts'
import { seal, unseal } from '#lib/disclosure/sealing.ts'
import { choosePayments, splitTotal } from '#lib/disclosure/selection.ts'
import { DISCLOSURE_ROLES, SLOTS } from '#lib/prover/disclosure-circuits.ts'
import { encodeField, encodePoint, FIELD, H, multiply } from '#lib/wallet/grumpkin.ts'
import { hash, TAG } from '#lib/wallet/poseidon.ts'
import { bytes, hex, holder, seeded, TOKEN } from '../wallet/fixtures.ts'

const SECRET = 4_711n
const account = holder('payee').address
const shared = { network: 'Test SDF Network ; September 2015', token: TOKEN, account }
const period = { from: '2026-01-01T00:00:00.000Z', to: '2026-07-01T00:00:00.000Z' }
const TOTAL: Question = { ...shared, statement: 'total', role: 'recipient', period, atLeast: '10000.0000000' }

const request = (question: Question = TOTAL) => createRequest(SECRET, question, seeded('request'))
const changed = (part: object) => JSON.stringify({ ...request(), ...part })

describe('a request', () => {
  test('contains everything that the requester relies on, and not its secret', () => {
    const text = JSON.stringify(request())
    expect(parseRequest(text)).toEqual(request())
    expect(request()).toMatchObject({ ...TOTAL, key: hex(encodePoint(multiply(H, SECRET))) })
    expect(text).not.toContain(SECRET.toString(16).padStart(64, '0'))
    expect(createRequest(SECRET, TOTAL, seeded('another')).nonce).not.toBe(request().nonce)
  })

  test.each(DISCLOSURE_ROLES)('accepts the circuits of its statement only: %s', (role) => {
    const of = (question: object) => circuitsFor({ ...shared, role, ...question } as Question).map(({ name }) => name)
    expect(of({ statement: 'payment' })).toEqual([`payment-${role}`])
    expect(of({ statement: 'total', period })).toEqual(SLOTS[role].map((slots) => `total-${role}-${slots}`))
    expect(of({ statement: 'total', period, atLeast: '1.0000000' })).toEqual(
      SLOTS[role].map((slots) => `total-at-least-${role}-${slots}`),
    )
    expect(of({ statement: 'balance', atMost: '1.0000000' })).toEqual(['balance-at-most'])
  })

  const INVALID: [string, string, RegExp][] = [
    ['no JSON', '{', /it is not JSON/],
    [
      'the requester’s secret as its nonce',
      changed({ nonce: SECRET.toString(16).padStart(64, '0') }),
      /contains a secret/,
    ],
    [
      'the requester’s secret in another field',
      changed({ note: `key ${SECRET.toString(16).padStart(64, '0')}` }),
      /contains a secret/,
    ],
    [
      'the requester’s secret among other digits',
      changed({ network: `Network deadbeef${SECRET.toString(16).padStart(64, '0')}0` }),
      /contains a secret/,
    ],
    ['a Stellar seed within other letters', changed({ network: `S${Keypair.random().secret()}` }), /contains a secret/],
    [
      'a Stellar seed in lower case',
      changed({ network: Keypair.random().secret().toLowerCase() }),
      /contains a secret/,
    ],
    ['more digits than a request needs', changed({ note: hex(seeded('digits')(1_000)) }), /more hexadecimal digits/],
    ['more than 1 MB', changed({ note: ' '.repeat(1_048_576) }), /is larger than 1 MB/],
    ['more than 1 MB of other characters', changed({ note: 'é'.repeat(524_288) }), /is larger than 1 MB/],
    ['more than 64 levels', `${'['.repeat(65)}${']'.repeat(65)}`, /nested deeper than 64 levels/],
    ['levels without an end', '{"a":'.repeat(150_000), /nested deeper than 64 levels/],
    ['a Stellar seed', changed({ account: Keypair.random().secret() }), /contains a secret/],
    ['an unknown field', changed({ secret: 'x' }), /Unrecognized key/],
    ['the identity as key', changed({ key: '0'.repeat(128) }), /not a point of the curve, or is the identity/],
    ['a key off the curve', changed({ key: '1'.repeat(128) }), /not a point of the curve/],
    [
      'a nonce that is no field element',
      changed({ nonce: FIELD.toString(16).padStart(64, '0') }),
      /nonce is too large/,
    ],
    [
      'a period that ends before it begins',
      changed({ period: { from: period.to, to: period.from } }),
      /ends before it begins/,
    ],
    ['circuits of another statement', changed({ circuits: ['payment-recipient'] }), /not those of its statement/],
    ['an amount in another form', changed({ atLeast: '1e3' }), /not an amount/],
    ['a threshold out of range', changed({ atLeast: `${2n ** 127n}.0000000` }), /not an amount/],
    ['an account that is none', changed({ account: 'G' }), /not an address/],
    [
      'two thresholds',
      JSON.stringify({ ...request({ ...shared, statement: 'balance', atLeast: '1.0000000' }), atMost: '2.0000000' }),
      /two thresholds/,
    ],
  ]

  test.each(INVALID)('is refused with %s', (_, text, reason) => {
    expect(() => parseRequest(text)).toThrow(
      expect.objectContaining({ code: 'request-invalid', message: expect.stringMatching(reason) }),
    )
  })
})

describe('sealing', () => {
  const addressee = { key: encodePoint(multiply(H, 0xdeadn)), nonce: encodeField(1n) }

  test('has no published vectors; these are pinned', () => {
    const [vk, secret] = [0x208fbdb70d2faacf04f987b54f12aeeaeb432acc29d650c86ce0f6275b958eb8n, 0x12345n]
    expect(hash(TAG.ephemeral, vk, 1n)).toBe(0x4a9be319f9413cf31e0755502d2202750be20ebfee9f695360dc76fc1cb2dc9n)
    expect(hash(TAG.disclosedTotal, secret, 1n)).toBe(
      0x6d20748a06c632073305c56e7587309647cea0d7a67a672947140e448ddb89cn,
    )
    expect(hash(TAG.disclosedValue, secret, 1n)).toBe(
      0x2c5f60973e1b88e236081e3207e64a12f3a8de503cfd23d953dc361c4874795n,
    )
    expect(seal(TAG.disclosedValue, 100n, addressee, 0xfeedfacen)).toEqual({
      key: bytes(
        '114ed4fcf2c57014eb678c577aa02f30ef590b713d7a6a5e87702d1c7f71957f' +
          '07a70cf826350d4f438c7a3c5e8761b0ae6cb63de757f0c96815f4057b9205f4',
      ),
      value: bytes('2a023d6b22fc7b562dde63f315043715393c88f261d78d485956115b36c360f6'),
    })
  })

  test('is opened by the requester for its nonce only', () => {
    const sealed = seal(TAG.disclosedTotal, 100n, addressee, 5n)
    expect(unseal(TAG.disclosedTotal, sealed, 0xdeadn, addressee.nonce)).toBe(100n)
    const refused = expect.objectContaining({ code: 'cannot-decrypt' })
    expect(() => unseal(TAG.disclosedTotal, sealed, 0xbeefn, addressee.nonce)).toThrow(refused)
    expect(() => unseal(TAG.disclosedTotal, sealed, 0xdeadn, encodeField(2n))).toThrow(refused)
    expect(() => unseal(TAG.disclosedValue, sealed, 0xdeadn, addressee.nonce)).toThrow(refused)
    expect(() => unseal(TAG.disclosedTotal, { ...sealed, key: new Uint8Array(64) }, 0xdeadn, addressee.nonce)).toThrow(
      refused,
    )
  })
})

describe('the payments of a total', () => {
  const circuits = circuitsFor({ ...shared, statement: 'total', role: 'recipient', period })
  const values = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ value: BigInt(index + 1) }) as OpenedPayment)
  const names = (count: number) =>
    splitTotal(circuits, values(count)).map(({ circuit, payments }) => [circuit.slots, payments.length])

  test('take as few proofs as possible, each as small as possible', () => {
    expect([names(1), names(10), names(11), names(27), names(28), names(60)]).toEqual([
      [[10, 1]],
      [[10, 10]],
      [[27, 11]],
      [[27, 27]],
      [
        [27, 27],
        [10, 1],
      ],
      [
        [27, 27],
        [27, 27],
        [10, 6],
      ],
    ])
  })

  test('fit a file, or are refused before the first proof', () => {
    const most = MAX_BUNDLES * 27
    expect(splitTotal(circuits, values(most))).toHaveLength(MAX_BUNDLES)
    expect(() => splitTotal(circuits, values(most + 1))).toThrow(expect.objectContaining({ code: 'too-many-payments' }))
  })

  test('reach a threshold with the largest, in one proof', () => {
    const { circuit, payments } = choosePayments(circuits, values(40), 79n)
    expect([circuit.slots, payments.map(({ value }) => value)]).toEqual([10, [40n, 39n]])
    expect(choosePayments(circuits, values(3), 0n).payments).toHaveLength(1)
    expect(() => choosePayments(circuits, values(3), 7n)).toThrow(expect.objectContaining({ code: 'not-true' }))
    // 27 of the 40 payments make 729 at most.
    expect(choosePayments(circuits, values(40), 729n).payments).toHaveLength(27)
    expect(() => choosePayments(circuits, values(40), 730n)).toThrow(
      expect.objectContaining({ code: 'too-many-payments' }),
    )
  })
})

describe('a bundle file', () => {
  const bundle = { circuit: 'payment-recipient', events: [{ transaction: '0'.repeat(64), eventIndex: 0 }], proof: '' }
  const file = (part: object) =>
    JSON.stringify({ version: 'confidential-disclosure/1', bundles: [{ ...bundle, ...part }] })

  test('has references, a proof and a sealed value, and nothing else', () => {
    expect(parseBundles(file({}))).toMatchObject([{ circuit: 'payment-recipient', events: bundle.events }])
    for (const text of [
      '{',
      file({ key: '00' }),
      file({ sealed: { key: 'f'.repeat(128), value: '0'.repeat(64) } }),
      file({ events: [{ transaction: 'x', eventIndex: 0 }] }),
    ]) {
      expect(() => parseBundles(text)).toThrow(expect.objectContaining({ code: 'bundle-invalid' }))
    }
  })

  test.each([
    ['of more than 1 MB', file({ circuit: 'a'.repeat(1_048_576) }), /larger than 1 MB/],
    ['of more than 64 levels', `{"a":${'['.repeat(64)}`, /nested deeper than 64 levels/],
  ])('%s is refused before it is parsed', (_, text, reason) => {
    expect(() => parseBundles(text)).toThrow(
      expect.objectContaining({ code: 'bundle-invalid', message: expect.stringMatching(reason) }),
    )
  })

  test('may have brackets in its texts, and as many proofs as a total may take', () => {
    expect(() => parseBundles(file({ circuit: '[{"\\'.repeat(20) }))).not.toThrow()
    const payment = { transaction: 'f'.repeat(64), eventIndex: 0xffff_ffff }
    const largest: Bundle = {
      circuit: 'total-at-least-auditor-recipient-27',
      events: Array.from({ length: 27 }, () => payment),
      proof: new Uint8Array(ZK_PROOF_BYTES),
      sealed: { key: encodePoint(multiply(H, 3n)), value: encodeField(1n) },
    }
    const text = encodeBundles(Array.from({ length: MAX_BUNDLES }, () => largest))
    expect(parseBundles(text)).toHaveLength(MAX_BUNDLES)
  })
})
