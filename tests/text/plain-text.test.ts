import { createHash } from 'node:crypto'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { afterEach, expect, test, vi } from 'vitest'
import { containsSecretSeed } from '#lib/text/plain-text.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const seedOf = (number: number) =>
  Keypair.fromRawEd25519Seed(createHash('sha256').update(`seed ${number}`).digest()).secret()

test('a seed is found wherever it stands, in either case', () => {
  for (let number = 0; number < 300; number += 1) {
    const seed = seedOf(number)
    for (const text of [seed, seed.toLowerCase(), `my key: ${seed}.`, `SA${seed}SA7`]) {
      expect([text, containsSecretSeed(text)]).toEqual([text, true])
    }
  }
})

test('what is no seed is none: another letter anywhere, an account, too short', () => {
  const seed = seedOf(1)
  for (let place = 0; place < seed.length; place += 1) {
    const changed = seed.slice(0, place) + (seed[place] === 'A' ? 'B' : 'A') + seed.slice(place + 1)
    expect(containsSecretSeed(changed)).toBe(false)
  }
  for (const text of [Keypair.fromSecret(seed).publicKey(), seed.slice(1), seed.slice(0, -1), '']) {
    expect(containsSecretSeed(text)).toBe(false)
  }
})

test.each(['S', 'SA', 'SAB'])('a body full of %s asks the library next to nothing', (part) => {
  const asked = vi.spyOn(StrKey, 'isValidEd25519SecretSeed')
  const text = part.repeat(256_000 / part.length)
  expect(containsSecretSeed(text)).toBe(false)
  expect(asked.mock.calls.length).toBeLessThan(10)
  expect(containsSecretSeed(text + seedOf(2))).toBe(true)
})
