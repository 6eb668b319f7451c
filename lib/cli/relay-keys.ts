import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { ConfigurationError, type Environment } from '#lib/config/environment.ts'
import { generateRelayKey, type PrivateRelayKey, parsePrivateRelayKey, publicHalf } from '#lib/config/relay-key.ts'

type RelayKeys = Required<Pick<Environment, 'CHANNEL_SEEDS' | 'RELAY_PRIVATE_KEY' | 'RELAY_PUBLIC_KEY'>>

/**
 * The keys in `file`, made up to `count` channels: what the file or the environment has is kept, the rest is new. The
 * file is written aside and renamed, for its owner's eyes alone.
 * @throws ConfigurationError for a file that cannot be used: it is left as it is
 */
export function keepRelayKeys(
  file: string,
  count: number,
  given: Pick<Environment, 'CHANNEL_SEEDS' | 'RELAY_PRIVATE_KEY'>,
): RelayKeys {
  const kept = existsSync(file) ? readKeys(file) : undefined
  const seeds = [...new Set([...(kept?.seeds ?? []), ...given.CHANNEL_SEEDS])]
  while (seeds.length < count) seeds.push(Keypair.random().secret())
  const key = kept?.key ?? given.RELAY_PRIVATE_KEY ?? generateRelayKey()
  const lines = [
    `CHANNEL_SEEDS='${seeds.join(',')}'`,
    `RELAY_PRIVATE_KEY='${JSON.stringify(key)}'`,
    `RELAY_PUBLIC_KEY='${JSON.stringify(publicHalf(key))}'`,
  ]
  writeFileSync(`${file}.new`, `${lines.join('\n')}\n`, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
  return { CHANNEL_SEEDS: seeds, RELAY_PRIVATE_KEY: key, RELAY_PUBLIC_KEY: publicHalf(key) }
}

function readKeys(file: string): { seeds: string[]; key: PrivateRelayKey } {
  const {
    CHANNEL_SEEDS = '',
    RELAY_PRIVATE_KEY = '',
    RELAY_PUBLIC_KEY: _,
    ...others
  } = parseEnv(readFileSync(file, 'utf8'))
  // The file is written anew: whatever else is in it would be lost.
  const [other] = Object.keys(others)
  if (other !== undefined) throw new ConfigurationError('--keys', `the file also has ${other}: name one of its own`)
  const seeds = CHANNEL_SEEDS.split(',')
  const key = parsePrivateRelayKey(RELAY_PRIVATE_KEY)
  if (!key || !seeds.every((seed) => StrKey.isValidEd25519SecretSeed(seed))) {
    throw new ConfigurationError('--keys', 'the file is there, and is not one of relay keys')
  }
  return { seeds, key }
}
