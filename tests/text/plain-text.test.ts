import { createHash } from 'node:crypto'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { containsSecretSeed, emailField, plainText } from '#lib/text/plain-text.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const seedOf = (number: number) =>
  Keypair.fromRawEd25519Seed(createHash('sha256').update(`seed ${number}`).digest()).secret()

test('finds a seed anywhere in the text, in either case', () => {
  for (let number = 0; number < 300; number += 1) {
    const seed = seedOf(number)
    for (const text of [seed, seed.toLowerCase(), `my key: ${seed}.`, `SA${seed}SA7`]) {
      expect([text, containsSecretSeed(text)]).toEqual([text, true])
    }
  }
})

test('ignores text that only resembles a seed', () => {
  const seed = seedOf(1)
  for (let place = 0; place < seed.length; place += 1) {
    const changed = seed.slice(0, place) + (seed[place] === 'A' ? 'B' : 'A') + seed.slice(place + 1)
    expect(containsSecretSeed(changed)).toBe(false)
  }
  for (const text of [Keypair.fromSecret(seed).publicKey(), seed.slice(1), seed.slice(0, -1), '']) {
    expect(containsSecretSeed(text)).toBe(false)
  }
})

test.each(['S', 'SA', 'SAB'])('rarely calls the library for a body full of %s', (part) => {
  const libraryCheck = vi.spyOn(StrKey, 'isValidEd25519SecretSeed')
  const text = part.repeat(256_000 / part.length)
  expect(containsSecretSeed(text)).toBe(false)
  expect(libraryCheck.mock.calls.length).toBeLessThan(10)
  expect(containsSecretSeed(text + seedOf(2))).toBe(true)
})

/** The problem of a value, or undefined. */
const problem = (field: ReturnType<typeof plainText> | typeof emailField, value: unknown) =>
  field.safeParse(value).error?.issues[0]?.message
const seed = seedOf(3)

describe('a field of plain text', () => {
  const name = plainText(200)

  test.each([
    'Åsa Öström · محمد علي · יוסי כהן · आर्या शर्मा · สมชาย ใจดี · 李小龍 · 김민준 · ნინო · አበበ',
    '👩🏽‍💻 & 🏳️‍🌈 𒀭𒂗𒆤 𓀀',
    '<b onclick="x()">Ann</b> &amp;',
    "'; DROP TABLE contractors; --",
    '𐍈'.repeat(200),
    `${seed.slice(0, -1)}${seed.endsWith('X') ? 'Y' : 'X'}`,
  ])('accepts %s unchanged', (value) => {
    expect(name.parse(value)).toBe(value)
  })

  test.each<[string, unknown[]]>([
    ['required', [undefined, '', ' \u00a0\u2003']],
    ['must be a string', [null, 7, ['Ann'], {}]],
    ['must have at most 200 characters', ['x'.repeat(201), '𐍈'.repeat(201), 'x'.repeat(10_000)]],
    ['must not contain control characters', ['A\u0000', 'A\nnn', 'A\tn', 'A\u0007', 'A\u0085nn', 'A\ud800nn']],
    ['must not contain a secret seed', [seed, `my key is ${seed}!`, `SSA${seed}A`, seed.toLowerCase()]],
  ])('refuses: %s', (reason, values) => {
    expect(values.map((value) => problem(name, value))).toEqual(values.map(() => reason))
  })
})

test.each<[string, unknown[]]>([
  ['must be a string', [7, null, {}]],
  [
    'must be an email address',
    [
      ...['', 'ann', 'ann@', 'a@b@c.example', 'a@b.example, c@d.example', 'a,b@c.example', 'Ann <a@b.example>', seed],
      ...['a@b.example\r\nBcc: c@d.example', `${'a'.repeat(250)}@b.example`],
      // NFKC changes each of these into another address.
      ...['\u212aen@b.example', 'ａnn@b.example', 'ﬁn@b.example', 'e\u0301mile@b.example'],
    ],
  ],
  ['must not contain a secret seed', [`${seed}@b.example`]],
])('accepts the email %s', (reason, values) => {
  expect(values.map((value) => problem(emailField, value))).toEqual(values.map(() => reason))
})
