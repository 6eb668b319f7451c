import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { parseUnits } from '#lib/text/money.ts'
import { isLoopback } from './loopback.ts'
import { parsePrivateRelayKey, parsePublicRelayKey } from './relay-key.ts'

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
const host = text.regex(/^[a-z\d.-]+(:\d{1,5})?$/i, 'not a host name')
const page = webUrl.refine((value) => !/[?#]/.test(value), 'more than an address of pages (https://host/path)')
const databaseUrl = text.refine(
  (value) => /^postgres(ql)?:\/\//.test(value) && URL.parse(value)?.hostname,
  'not a postgres:// URL',
)
const smtpUrl = text.refine(
  (value) => /^smtps?:$/.test(URL.parse(value)?.protocol ?? '') && URL.parse(value)?.hostname,
  'not an smtp(s) URL',
)
const sender = text.regex(
  /^([^<>"@,;\p{Cc}]* <[^\s@<>,;"\p{Cc}]+@[^\s@<>,;"\p{Cc}]+>|[^\s@<>,;"\p{Cc}]+@[^\s@<>,;"\p{Cc}]+)$/u,
  'not a sender (Name <a@b>)',
)
// Keys that anybody on the way could replace would verify anybody's token.
export const secureUrl = text.refine(isSecure, 'not an https URL (http is for localhost alone)')

/** A key as `read` understands it. */
const relayKey = <Key>(read: (value: string) => Key | undefined, problem: string) =>
  text.transform((value, context) => {
    const key = read(value)
    if (key !== undefined) return key
    context.addIssue(problem)
    return z.NEVER
  })

/** What each variable may be. A variable that is absent or empty takes its default; README lists them. */
export const VARIABLES = {
  PUBLIC_URL: origin.optional(),
  // Vercel sets these: where production is, what this deployment is, and where it is.
  VERCEL_PROJECT_PRODUCTION_URL: host.optional(),
  VERCEL_ENV: text.optional(),
  VERCEL_BRANCH_URL: host.optional(),
  VERCEL_URL: host.optional(),
  FRONTEND_URL: page.optional(),
  CORS_ORIGINS: list.pipe(z.array(origin)).optional(),
  PORT: count(0, 65_535).default(3000),
  DATA_DIR: text.default('.data'),
  DATABASE_URL: databaseUrl.optional(),
  POSTGRES_URL: databaseUrl.optional(),
  // Vercel sets it to 1, in builds and in functions.
  VERCEL: text.optional(),
  // The embedded ledger, or testnet on Vercel, where nothing can be embedded.
  STELLAR_NETWORK: z.enum(['local', 'testnet'], 'neither local nor testnet').optional(),
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
  INVITE_LIMIT: count(1, 100_000).default(200),
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

function isSecure(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}
