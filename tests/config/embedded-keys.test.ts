import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StrKey } from '@stellar/stellar-sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keepKeys } from '#lib/config/embedded-keys.ts'
import { ConfigurationError } from '#lib/config/environment.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'payroll-keys-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true })
})

const file = () => join(directory, 'keys.json')
const never = () => Promise.reject(new Error('a key was generated although one was stored'))

test('generates the keys once and reuses them', async () => {
  const keys = await keepKeys(directory, generateIdentityKey)
  expect(StrKey.isValidEd25519SecretSeed(keys.sponsorSeed)).toBe(true)
  expect(Buffer.from(keys.sessionSecret, 'base64url')).toHaveLength(32)
  expect(await keepKeys(directory, never)).toEqual(keys)
})

test('generates different keys for each directory', async () => {
  const first = await keepKeys(directory, generateIdentityKey)
  rmSync(file())
  const second = await keepKeys(directory, generateIdentityKey)
  expect(second.sponsorSeed).not.toBe(first.sponsorSeed)
  expect(second.sessionSecret).not.toBe(first.sessionSecret)
  expect(second.identityKey.d).not.toBe(first.identityKey.d)
})

test('writes a file that only its owner can read, and leaves no other file', async () => {
  await keepKeys(directory, generateIdentityKey)
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(['keys.json'])
})

test('generates new keys after a start that crashed before the rename', async () => {
  writeFileSync(`${file()}.new`, '{"sessionSecret":"half', { mode: 0o600 })
  const keys = await keepKeys(directory, generateIdentityKey)
  expect(await keepKeys(directory, never)).toEqual(keys)
})

describe('stops startup on an invalid file without overwriting it', () => {
  const SECRET = 'hunter2'.repeat(5)
  const whole = async () => JSON.parse(JSON.stringify(await keepKeys(directory, generateIdentityKey)))
  const damages: [string, (keys: Record<string, unknown>) => string][] = [
    ['empty', () => ''],
    ['truncated', (keys) => JSON.stringify(keys).slice(0, -20)],
    ['not JSON', () => SECRET],
    ['null', () => 'null'],
    ['a short session secret', (keys) => JSON.stringify({ ...keys, sessionSecret: 'hunter2' })],
    ['no sponsor', (keys) => JSON.stringify({ ...keys, sponsorSeed: undefined })],
    ['an invalid seed', (keys) => JSON.stringify({ ...keys, sponsorSeed: SECRET })],
    ['an identity key of another type', (keys) => JSON.stringify({ ...keys, identityKey: { kty: 'RSA', d: SECRET } })],
  ]

  test.each(damages)('%s', async (_, damage) => {
    const damaged = damage(await whole())
    writeFileSync(file(), damaged)
    const error = await keepKeys(directory, never).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigurationError)
    expect((error as ConfigurationError).variable).toBe('DATA_DIR')
    expect((error as ConfigurationError).message).toContain(file())
    expect((error as ConfigurationError).message).not.toContain('hunter2')
    expect(readFileSync(file(), 'utf8')).toBe(damaged)
  })
})
