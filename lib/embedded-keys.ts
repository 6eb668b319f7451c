import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { ConfigurationError } from './env.ts'
import { generateRelayKey, PRIVATE_RELAY_KEY } from './relay-key.ts'

const seed = z.string().refine((text) => StrKey.isValidEd25519SecretSeed(text))

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

/** What a directory has that is older than the relay. */
const EARLIER_KEYS = KEYS.omit({ channelSeeds: true, relayKey: true }).extend({
  channelSeeds: z.undefined(),
  relayKey: z.undefined(),
})

/** The keys that the embedded default makes for itself. */
export type EmbeddedKeys = z.output<typeof KEYS>

/**
 * Reads the keys kept in `directory`, or makes them at the first start. The file is for this user's eyes only, and
 * written aside and renamed, so that a crash leaves all of it or nothing. The caller holds the directory's lock.
 * @throws ConfigurationError when the file is there but cannot be used: new keys would lose what the old ones own
 */
export async function keepKeys(directory: string, makeIdentityKey: () => Promise<unknown>): Promise<EmbeddedKeys> {
  const file = join(directory, 'keys.json')
  const kept = readIfThere(file)
  if (kept !== undefined) {
    try {
      const keys: unknown = JSON.parse(kept)
      const whole = KEYS.safeParse(keys)
      if (whole.success) return whole.data
      return save(file, { ...EARLIER_KEYS.parse(keys), ...makeRelayKeys() })
    } catch {
      throw new ConfigurationError('DATA_DIR', `${file} cannot be read; restore it, or remove the directory`)
    }
  }
  return save(file, {
    sessionSecret: randomBytes(32).toString('base64url'),
    sponsorSeed: Keypair.random().secret(),
    identityKey: await makeIdentityKey(),
    ...makeRelayKeys(),
  })
}

/** As many lanes as the default batch has transfers. */
const CHANNELS = 3

const makeRelayKeys = () => ({
  channelSeeds: Array.from({ length: CHANNELS }, () => Keypair.random().secret()),
  relayKey: generateRelayKey(),
})

function save(file: string, made: Record<string, unknown>): EmbeddedKeys {
  const keys = KEYS.parse(made)
  writeFileSync(`${file}.new`, JSON.stringify(keys, null, 2), { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
  return keys
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
