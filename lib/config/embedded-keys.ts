import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { dataPath } from './data-directory.ts'
import { ConfigurationError } from './environment.ts'
import { generateRelayKey, PRIVATE_RELAY_KEY } from './relay-key.ts'

const seed = z.string().refine((text) => StrKey.isValidEd25519SecretSeed(text))

/** One channel per transfer of the default batch. */
const CHANNELS = 3

const KEYS = z.object({
  sessionSecret: z.string().min(32),
  sponsorSeed: seed,
  /** of the relay's channel accounts */
  channelSeeds: z.array(seed).min(1),
  relayKey: PRIVATE_RELAY_KEY,
  /** private P-256 key of the embedded test issuer, as a JWK */
  identityKey: z.looseObject({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: z.string(),
    y: z.string(),
    d: z.string(),
  }),
})

/** The keys that a service on the embedded defaults generates. */
export type EmbeddedKeys = z.output<typeof KEYS>

/**
 * Reads the keys in `directory`, or generates them on the first start. Only the owner can read the file. It is written
 * under another name and renamed, so a crash leaves a complete file or none. The caller must hold the directory's lock.
 * @throws ConfigurationError if the file exists but is invalid: new keys would lose access to everything that the old
 * ones own
 */
export async function keepKeys(directory: string, makeIdentityKey: () => Promise<unknown>): Promise<EmbeddedKeys> {
  const file = dataPath(directory, 'keys.json')
  const stored = readKeys(directory)
  if (stored) return stored
  const keys = KEYS.parse({
    sessionSecret: randomBytes(32).toString('base64url'),
    sponsorSeed: Keypair.random().secret(),
    channelSeeds: Array.from({ length: CHANNELS }, () => Keypair.random().secret()),
    relayKey: generateRelayKey(),
    identityKey: await makeIdentityKey(),
  })
  writeFileSync(`${file}.new`, JSON.stringify(keys, null, 2), { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
  return keys
}

/** The keys in `directory`, if a service has generated them. @throws ConfigurationError if the file is invalid */
export function readKeys(directory: string): EmbeddedKeys | undefined {
  const file = dataPath(directory, 'keys.json')
  const stored = readIfExists(file)
  if (stored === undefined) return undefined
  try {
    return KEYS.parse(JSON.parse(stored))
  } catch {
    throw new ConfigurationError('DATA_DIR', `${file} cannot be read; restore it, or remove the directory`)
  }
}

function readIfExists(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
