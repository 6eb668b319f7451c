import { createHash } from 'node:crypto'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { emailField, foldEmail } from '#lib/text/email.ts'
import { containsSecretSeed, plainText } from '#lib/text/plain-text.ts'

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

/** Invisible characters, as they were tried: one of each kind. */
const INVISIBLE = [
  ...['\u200b', '\u200e', '\u202a', '\u2060', '\u2066', '\u00ad', '\u034f', '\u061c', '\u115f', '\u180e'],
  ...['\u2800', '\ufffd', '\ufeff', '\u3164', '\uffa0', '\ue000', '\u{f0000}', '\u{e0061}', '\u{e0100}'],
]

describe('a field of plain text', () => {
  const name = plainText(200)

  test.each(INVISIBLE)('refuses the invisible character %j at any place', (character) => {
    for (const value of [`${character}Ann`, `A${character}nn`, `Ann${character}`]) {
      expect(problem(name, value)).toBe('must not contain invisible characters')
    }
  })

  test.each([
    ['a Persian name', 'علی\u200cرضا'],
    ['an Indic name', 'क्\u200dष'],
    ['a Malayalam name', 'മോഹന്\u200d'],
    ['a Japanese name', '葛\u{e0100}城'],
    ['a family', '👨\u200d👩\u200d👧'],
    ['a coloured heart', '❤\ufe0f'],
    ['a rainbow flag', '🏳\ufe0f\u200d🌈'],
  ])('accepts the joiners of %s', (_, value) => {
    expect(name.parse(value)).toBe(value)
  })

  test.each(['\u200d', '\ufe0f', 'Ann\u200d', '\u200cAnn', ' \u200d ', '葛\u{e0100}\u{e0100}'])(
    'refuses %j, whose joiner joins nothing',
    (value) => {
      expect(problem(name, value)).toBe('must not contain invisible characters')
    },
  )

  test('normalizes a name, so that it is found in each of its spellings', () => {
    expect(name.parse('Rene\u0301')).toBe('Ren\u00e9')
  })

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
      ...INVISIBLE.flatMap((character) => [
        `a${character}nn@b.example`,
        `ann@b${character}.example`,
        `ann@b.example${character}`,
      ]),
      ...[
        'a\u200cnn@b.example',
        'ann\ufe0f@b.example',
        'ann@b.example.',
        "ann@b.example'",
        'ann@b.example/',
        'ann.@b.example',
      ],
      ...['ann@b..example', 'ann@-b.example', 'ann@b_c.example', 'ann@1.2.3.4', 'ann@b.example/x', 'ann@b%41.example'],
      ...['\u212aen@b.example', 'ａnn@b.example', 'ﬁn@b.example', 'e\u0301mile@b.example'],
    ],
  ],
  ['must not contain a secret seed', [`${seed}@b.example`]],
])('accepts the email %s', (reason, values) => {
  expect(values.map((value) => problem(emailField, value))).toEqual(values.map(() => reason))
})

test.each([
  'ann@b.example',
  "o'neil+pay@b.co.uk",
  'ann@bücher.example',
  'ann@例え.example',
  'ann@例え。example',
  'ann@localhost',
])('accepts the email address %s', (value) => {
  expect(problem(emailField, value)).toBeUndefined()
})

test.each([
  ['Ann@B.Example', 'ann@b.example'],
  ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
  ['ann@BÜCHER.example', 'ann@XN--BCHER-KVA.example'],
  ['ann@例え。example', 'ann@例え.example'],
])('compares %s and %s as one address', (one, other) => {
  expect(foldEmail(one)).toBe(foldEmail(other))
})
