import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'

/** A variable that is set to something unusable. Names the variable, never its value. */
export class ConfigurationError extends Error {
  readonly variable: string

  constructor(variable: string, problem: string) {
    super(`${variable}: ${problem}`)
    this.name = 'ConfigurationError'
    this.variable = variable
  }
}

const text = z.string()
const seed = text.refine((value) => StrKey.isValidEd25519SecretSeed(value), 'not a Stellar secret seed (S…)')
const contract = text.refine((value) => StrKey.isValidContract(value), 'not a contract address (C…)')
const count = (least: number, most: number) =>
  text
    .regex(/^\d{1,15}$/, 'not a whole number')
    .transform(Number)
    .refine((value) => value >= least && value <= most, `not between ${least} and ${most}`)
const stroops = text.regex(/^\d{1,18}$/, 'not a whole number of stroops').transform(BigInt)
const list = text.transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
)
const webUrl = text
  .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), 'not an http(s) URL')
  .transform((value) => value.replace(/\/+$/, ''))

/** What each variable may be. A variable that is absent or empty takes its default; README lists them. */
const VARIABLES = {
  PUBLIC_URL: webUrl.refine((value) => new URL(value).pathname === '/', 'has a path: give the origin alone').optional(),
  VERCEL_PROJECT_PRODUCTION_URL: text.optional(),
  CORS_ORIGINS: list.optional(),
  PORT: count(0, 65_535).default(3000),
  DATA_DIR: text.default('.data'),
  DATABASE_URL: text.regex(/^postgres(ql)?:\/\//, 'not a postgres:// URL').optional(),
  POSTGRES_URL: text.regex(/^postgres(ql)?:\/\//, 'not a postgres:// URL').optional(),
  STELLAR_NETWORK: z.enum(['local', 'testnet'], 'neither local nor testnet').default('local'),
  STELLAR_RPC_URL: webUrl.optional(),
  CONFIDENTIAL_TOKEN: contract.optional(),
  SESSION_SECRET: text.refine((value) => Buffer.byteLength(value) >= 32, 'shorter than 32 bytes').optional(),
  SESSION_TTL: count(60, 86_400).default(3600),
  SEP10_SEED: seed.optional(),
  SPONSOR_SEED: seed.optional(),
  FAUCET_SEED: seed.optional(),
  CHANNEL_SEEDS: list.pipe(z.array(seed)).default([]),
  SPONSOR_CONTRACTS: list.pipe(z.array(contract)).optional(),
  SPONSOR_FUNCTIONS: list.default(['confidential_transfer']),
  SPONSOR_MAX_FEE: stroops.default(5_000_000n),
  SPONSOR_QUOTA_TRANSFERS: count(0, 1_000_000_000).default(500),
  SPONSOR_QUOTA_STROOPS: stroops.default(1_000_000_000n),
  SPONSOR_DAILY_BUDGET: stroops.default(10_000_000_000n),
  TRANSFER_WAIT: count(1, 600).default(45),
  IDP_ISSUER: text.optional(),
  IDP_AUDIENCE: text.optional(),
  IDP_JWKS_URL: webUrl.optional(),
  IDP_ALGS: list
    .refine(
      (algs) => algs.every((alg) => /^(RS|PS|ES)(256|384|512)$|^EdDSA$/.test(alg)),
      'not a list of RS, PS, ES or EdDSA algorithms',
    )
    .default(['RS256', 'ES256']),
  IDP_EMAIL_CLAIM: text.default('email'),
  DEVNET_PORT: count(0, 65_535).default(8000),
  DEVNET_CLOSE_MS: count(50, 60_000).default(1000),
  DEVNET_PASSPHRASE: text.default('Standalone Network ; February 2017'),
}

type Variables = { [Name in keyof typeof VARIABLES]: z.output<(typeof VARIABLES)[Name]> }

/** The longest home domain whose `<home domain> auth` still fits the 64 bytes of a manageData name (SEP-10). */
const HOME_DOMAIN_BYTES = 59

/** The passphrase of Stellar's main network, where this service must never run. */
const PUBLIC_PASSPHRASE = 'Public Global Stellar Network ; September 2015'

/** The validated environment: plain values, defaults filled in, keys that were not given still absent. */
export interface Environment extends Omit<Variables, 'VERCEL_PROJECT_PRODUCTION_URL' | 'POSTGRES_URL' | 'PUBLIC_URL'> {
  PUBLIC_URL: string
}

/**
 * Reads and validates configuration from `variables`.
 * @throws ConfigurationError with the name of the first variable that is wrong
 */
export function readEnvironment(variables: Record<string, string | undefined>): Environment {
  const read = Object.fromEntries(
    Object.entries(VARIABLES).map(([name, schema]) => {
      const parsed = schema.safeParse(variables[name] || undefined)
      if (!parsed.success) throw new ConfigurationError(name, parsed.error.issues[0]?.message ?? 'invalid')
      return [name, parsed.data]
    }),
  ) as Variables
  const { VERCEL_PROJECT_PRODUCTION_URL, POSTGRES_URL, ...environment } = read
  const publicUrl =
    read.PUBLIC_URL ??
    (VERCEL_PROJECT_PRODUCTION_URL ? `https://${VERCEL_PROJECT_PRODUCTION_URL}` : `http://localhost:${read.PORT}`)
  if (!URL.canParse(publicUrl)) throw new ConfigurationError('VERCEL_PROJECT_PRODUCTION_URL', 'not a host name')
  if (Buffer.byteLength(new URL(publicUrl).host) > HOME_DOMAIN_BYTES) {
    throw new ConfigurationError('PUBLIC_URL', `its host is longer than ${HOME_DOMAIN_BYTES} bytes (SEP-10)`)
  }
  if (read.DEVNET_PASSPHRASE === PUBLIC_PASSPHRASE) {
    throw new ConfigurationError('DEVNET_PASSPHRASE', 'is that of the main network; this service is for test networks')
  }
  if (read.IDP_ISSUER && !read.IDP_AUDIENCE) {
    throw new ConfigurationError('IDP_AUDIENCE', 'is needed beside IDP_ISSUER')
  }
  return { ...environment, DATABASE_URL: read.DATABASE_URL ?? POSTGRES_URL, PUBLIC_URL: publicUrl }
}

let known: Environment | undefined

/** The environment of this process, read and validated at first use. */
export function environment(): Environment {
  known ??= readEnvironment(process.env)
  return known
}
