import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { parseUnits } from './money.ts'
import { parsePrivateRelayKey, parsePublicRelayKey } from './relay-key.ts'

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
const address = text.refine(
  (value) => StrKey.isValidContract(value) || StrKey.isValidEd25519PublicKey(value),
  'not an address (G… or C…)',
)
const contract = text.refine((value) => StrKey.isValidContract(value), 'not a contract address (C…)')
const count = (least: number, most: number) =>
  text
    .regex(/^\d{1,15}$/, 'not a whole number')
    .transform(Number)
    .refine((value) => value >= least && value <= most, `not between ${least} and ${most}`)
const stroops = text.regex(/^\d{1,18}$/, 'not a whole number of stroops').transform(BigInt)
const amount = text
  .regex(/^\d{1,12}(\.\d{1,7})?$/, 'not a decimal of at most seven places')
  .transform(parseUnits)
  .refine((units) => units > 0n, 'nothing at all')
const list = text
  .transform((value) =>
    value
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean),
  )
  .refine((items) => items.length > 0, 'a list with nothing in it')
const webUrl = text
  .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), 'not an http(s) URL')
  .transform((value) => value.replace(/\/+$/, ''))
const origin = webUrl
  .refine((value) => new URL(value).href === `${new URL(value).origin}/`, 'more than an origin (https://host:port)')
  .transform((value) => new URL(value).origin)
const page = webUrl.refine((value) => !/[?#]/.test(value), 'more than an address of pages (https://host/path)')
const smtpUrl = text.refine(
  (value) => /^smtps?:$/.test(URL.parse(value)?.protocol ?? '') && URL.parse(value)?.hostname,
  'not an smtp(s) URL',
)
const sender = text.regex(
  /^([^<>"@,;\p{Cc}]* <[^\s@<>,;"\p{Cc}]+@[^\s@<>,;"\p{Cc}]+>|[^\s@<>,;"\p{Cc}]+@[^\s@<>,;"\p{Cc}]+)$/u,
  'not a sender (Name <a@b>)',
)
// Keys that anybody on the way could replace would verify anybody's token.
const secureUrl = text.refine(isSecure, 'not an https URL (http is for localhost alone)')

/** A key as `read` understands it. */
const relayKey = <Key>(read: (value: string) => Key | undefined, problem: string) =>
  text.transform((value, context) => {
    const key = read(value)
    if (key !== undefined) return key
    context.addIssue(problem)
    return z.NEVER
  })

/** What each variable may be. A variable that is absent or empty takes its default; README lists them. */
const VARIABLES = {
  PUBLIC_URL: origin.optional(),
  VERCEL_PROJECT_PRODUCTION_URL: text.regex(/^[a-z\d.-]+$/i, 'not a host name').optional(),
  FRONTEND_URL: page.optional(),
  CORS_ORIGINS: list.pipe(z.array(origin)).optional(),
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
  BRIDGE_VAULT_ADDRESS: address.optional(),
  FAUCET_SEED: seed.optional(),
  FAUCET_AMOUNT: amount.default(1_000_0000000n),
  FAUCET_COOLDOWN: count(0, 31_536_000).default(3600),
  CHANNEL_SEEDS: list.pipe(z.array(seed)).default([]),
  // Absent it stands for the confidential token; empty, or `none`, it refuses every contract.
  SPONSOR_CONTRACTS: z
    .union(
      [z.literal('none').transform(() => []), list.pipe(z.array(contract))],
      'neither contract addresses (C…) nor none',
    )
    .optional(),
  SPONSOR_FUNCTIONS: list
    .pipe(z.array(text.regex(/^\w{1,32}$/, 'not a function name')))
    .default(['confidential_transfer']),
  SPONSOR_MAX_FEE: stroops.default(5_000_000n),
  SPONSOR_QUOTA_TRANSFERS: count(0, 1_000_000_000).default(500),
  SPONSOR_QUOTA_STROOPS: stroops.default(1_000_000_000n),
  SPONSOR_DAILY_BUDGET: stroops.default(10_000_000_000n),
  TRANSFER_WAIT: count(1, 600).default(45),
  IDP_ISSUER: text.optional(),
  IDP_AUDIENCE: text.optional(),
  IDP_JWKS_URL: secureUrl.optional(),
  IDP_ALGS: list
    .refine(
      (algs) => algs.every((alg) => /^(RS|PS|ES)(256|384|512)$|^EdDSA$/.test(alg)),
      'not a list of RS, PS, ES or EdDSA algorithms',
    )
    .default(['RS256', 'ES256']),
  IDP_EMAIL_CLAIM: text.default('email'),
  SMTP_URL: smtpUrl.optional(),
  MAIL_FROM: sender.optional(),
  // On where the ledger is embedded, off elsewhere.
  BATCH_ENABLED: z
    .enum(['true', 'false'], 'neither true nor false')
    .transform((value) => value === 'true')
    .optional(),
  RELAY_PORT: count(0, 65_535).default(3100),
  RELAY_PUBLIC_KEY: relayKey(parsePublicRelayKey, 'not a P-256 public key as a JWK').optional(),
  RELAY_PRIVATE_KEY: relayKey(parsePrivateRelayKey, 'not a P-256 private key as a JWK').optional(),
  RELAY_PROVER: text.optional(),
  CRON_SECRET: text.refine((value) => Buffer.byteLength(value) >= 16, 'shorter than 16 bytes').optional(),
  METRICS_TOKEN: text.refine((value) => Buffer.byteLength(value) >= 16, 'shorter than 16 bytes').optional(),
  OPERATOR_PASSWORD: text.refine((value) => value.length >= 8, 'shorter than 8 characters').optional(),
  DEVNET_PORT: count(0, 65_535).default(8000),
  DEVNET_CLOSE_MS: count(50, 60_000).default(1000),
  DEVNET_PASSPHRASE: text.default('Standalone Network ; February 2017'),
}

/** The name of every variable that is read. */
export const VARIABLE_NAMES = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[]

type Variables = { [Name in keyof typeof VARIABLES]: z.output<(typeof VARIABLES)[Name]> }

/** An empty variable is one that is not set, except where emptiness says something: a list that allows nothing. */
function meantBy(name: string, value: string | undefined): string | undefined {
  return name === 'SPONSOR_CONTRACTS' && value === '' ? 'none' : value || undefined
}

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
      const parsed = schema.safeParse(meantBy(name, variables[name]))
      if (!parsed.success) throw new ConfigurationError(name, parsed.error.issues[0]?.message ?? 'invalid')
      return [name, parsed.data]
    }),
  ) as Variables
  const { VERCEL_PROJECT_PRODUCTION_URL, POSTGRES_URL, ...environment } = read
  const publicUrl =
    read.PUBLIC_URL ??
    (VERCEL_PROJECT_PRODUCTION_URL ? `https://${VERCEL_PROJECT_PRODUCTION_URL}` : `http://localhost:${read.PORT}`)
  checkHomeDomain(publicUrl)
  if (read.DEVNET_PASSPHRASE === PUBLIC_PASSPHRASE) {
    throw new ConfigurationError('DEVNET_PASSPHRASE', 'is that of the main network; this service is for test networks')
  }
  checkProvider(read)
  checkMail(read)
  checkRelay(read)
  return { ...environment, DATABASE_URL: read.DATABASE_URL ?? POSTGRES_URL, PUBLIC_URL: publicUrl }
}

function checkHomeDomain(publicUrl: string): void {
  if (URL.canParse(publicUrl) && Buffer.byteLength(new URL(publicUrl).host) <= HOME_DOMAIN_BYTES) return
  throw new ConfigurationError('PUBLIC_URL', `its host is not one of at most ${HOME_DOMAIN_BYTES} bytes (SEP-10)`)
}

/** Half a provider is a mistake, and must not pass for none. */
function checkProvider({ IDP_ISSUER, IDP_AUDIENCE, IDP_JWKS_URL }: Variables): void {
  if (IDP_ISSUER && !IDP_AUDIENCE) throw new ConfigurationError('IDP_AUDIENCE', 'is needed beside IDP_ISSUER')
  if (!IDP_ISSUER && (IDP_AUDIENCE || IDP_JWKS_URL)) {
    throw new ConfigurationError('IDP_ISSUER', 'is needed beside IDP_AUDIENCE and IDP_JWKS_URL')
  }
  if (IDP_ISSUER && !IDP_JWKS_URL && !secureUrl.safeParse(IDP_ISSUER).success) {
    throw new ConfigurationError('IDP_ISSUER', 'is no https URL that could be asked for its keys: give IDP_JWKS_URL')
  }
}

function checkMail({ SMTP_URL, MAIL_FROM }: Variables): void {
  if (SMTP_URL && !MAIL_FROM) throw new ConfigurationError('MAIL_FROM', 'is needed beside SMTP_URL')
  if (MAIL_FROM && !SMTP_URL) throw new ConfigurationError('SMTP_URL', 'is needed beside MAIL_FROM')
}

/** What is sealed to another key no relay could open. */
function checkRelay({ RELAY_PUBLIC_KEY: known, RELAY_PRIVATE_KEY: own }: Variables): void {
  if (known && own && (known.x !== own.x || known.y !== own.y)) {
    throw new ConfigurationError('RELAY_PUBLIC_KEY', 'is not that of RELAY_PRIVATE_KEY')
  }
}

function isSecure(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback)
}

let known: Environment | undefined

/** The environment of this process, read and validated at first use. */
export function environment(): Environment {
  known ??= readEnvironment(process.env)
  return known
}
