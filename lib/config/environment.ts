import type { z } from 'zod'
import { secureUrl } from './shapes.ts'
import { VARIABLES } from './variables.ts'

/** A variable with an invalid value. The message contains the variable's name, never its value. */
export class ConfigurationError extends Error {
  readonly variable: string

  constructor(variable: string, problem: string) {
    super(`${variable}: ${problem}`)
    this.name = 'ConfigurationError'
    this.variable = variable
  }
}

/** The names of all variables that the service reads. */
export const VARIABLE_NAMES = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[]

type Variables = { [Name in keyof typeof VARIABLES]: z.output<(typeof VARIABLES)[Name]> }

/**
 * A variable without the white space, line feed or byte-order mark that secret stores and editors leave around it. An empty one is
 * unset. An empty list of what is sponsored means `none`: it allows nothing.
 */
function normalize(name: string, given: string | undefined): string | undefined {
  const value = given?.trim()
  return (name === 'SPONSOR_CONTRACTS' || name === 'SPONSOR_CALLS') && value === '' ? 'none' : value || undefined
}

/** The longest home domain for which `<home domain> auth` fits into the 64 bytes of a manageData name (SEP-10). */
const HOME_DOMAIN_BYTES = 59

/** The passphrase of Stellar's main network. The service must never run there. */
const PUBLIC_PASSPHRASE = 'Public Global Stellar Network ; September 2015'

/** Variables that only determine PUBLIC_URL and DATABASE_URL, and are not part of the result. */
type Raw = 'VERCEL_PROJECT_PRODUCTION_URL' | 'VERCEL_ENV' | 'VERCEL_BRANCH_URL' | 'VERCEL_URL' | 'POSTGRES_URL'

/** The validated environment with defaults applied. Missing keys stay absent. */
export interface Environment extends Omit<Variables, Raw | 'PUBLIC_URL' | 'STELLAR_NETWORK'> {
  PUBLIC_URL: string
  STELLAR_NETWORK: 'local' | 'testnet'
}

/**
 * Reads and validates configuration from `variables`.
 * @throws ConfigurationError with the name of the first invalid variable
 */
export function readEnvironment(variables: Record<string, string | undefined>): Environment {
  const values = Object.fromEntries(
    Object.entries(VARIABLES).map(([name, schema]) => {
      const parsed = schema.safeParse(normalize(name, variables[name]))
      if (!parsed.success) throw new ConfigurationError(name, parsed.error.issues[0]?.message ?? 'invalid')
      return [name, parsed.data]
    }),
  ) as Variables
  const { VERCEL_PROJECT_PRODUCTION_URL, VERCEL_ENV, VERCEL_BRANCH_URL, VERCEL_URL, POSTGRES_URL, ...environment } =
    values
  const publicUrl = locateService(values)
  if (!isHomeDomain(publicUrl)) {
    throw new ConfigurationError('PUBLIC_URL', `its host is longer than ${HOME_DOMAIN_BYTES} bytes (SEP-10)`)
  }
  if (values.DEVNET_PASSPHRASE === PUBLIC_PASSPHRASE) {
    throw new ConfigurationError(
      'DEVNET_PASSPHRASE',
      'is the passphrase of the main network; this service is for test networks',
    )
  }
  checkProvider(values)
  checkMail(values)
  checkRelay(values)
  checkVercel(values)
  return {
    ...environment,
    DATABASE_URL: values.DATABASE_URL ?? POSTGRES_URL,
    PUBLIC_URL: publicUrl,
    STELLAR_NETWORK: values.STELLAR_NETWORK ?? (values.VERCEL ? 'testnet' : 'local'),
  }
}

/**
 * The address at which clients reach the service. A preview on Vercel is a separate service: its address is the host
 * of its branch, which does not change with each push, unless that host is too long.
 */
function locateService(read: Variables): string {
  if (read.PUBLIC_URL) return read.PUBLIC_URL
  const urls = hostsOf(read).flatMap((host) => (host ? [`https://${host}`] : []))
  return urls.find(isHomeDomain) ?? urls[0] ?? `http://localhost:${read.PORT}`
}

function hostsOf(read: Variables): (string | undefined)[] {
  const { VERCEL_ENV, VERCEL_BRANCH_URL, VERCEL_URL, VERCEL_PROJECT_PRODUCTION_URL } = read
  return VERCEL_ENV === 'preview' ? [VERCEL_BRANCH_URL, VERCEL_URL] : [VERCEL_PROJECT_PRODUCTION_URL]
}

function isHomeDomain(publicUrl: string): boolean {
  return URL.canParse(publicUrl) && Buffer.byteLength(new URL(publicUrl).host) <= HOME_DOMAIN_BYTES
}

/** Rejects an incomplete provider: it must not be treated as no provider. */
function checkProvider({ IDP_ISSUER, IDP_AUDIENCE, IDP_JWKS_URL, IDP_CLIENT_ID }: Variables): void {
  if (IDP_ISSUER && !IDP_AUDIENCE) throw new ConfigurationError('IDP_AUDIENCE', 'is required with IDP_ISSUER')
  if (!IDP_ISSUER && (IDP_AUDIENCE || IDP_JWKS_URL)) {
    throw new ConfigurationError('IDP_ISSUER', 'is required with IDP_AUDIENCE and IDP_JWKS_URL')
  }
  if (IDP_CLIENT_ID && !secureUrl.safeParse(IDP_ISSUER).success) {
    throw new ConfigurationError(
      'IDP_CLIENT_ID',
      'requires an IDP_ISSUER that is an https URL, to discover its endpoints',
    )
  }
  if (IDP_ISSUER && !IDP_JWKS_URL && !secureUrl.safeParse(IDP_ISSUER).success) {
    throw new ConfigurationError(
      'IDP_ISSUER',
      'is not an https URL, so its keys cannot be discovered: set IDP_JWKS_URL',
    )
  }
}

function checkMail({ SMTP_URL, MAIL_FROM }: Variables): void {
  if (SMTP_URL && !MAIL_FROM) throw new ConfigurationError('MAIL_FROM', 'is required with SMTP_URL')
  if (MAIL_FROM && !SMTP_URL) throw new ConfigurationError('SMTP_URL', 'is required with MAIL_FROM')
}

/** With keys that do not match, no relay could decrypt the amounts that the service encrypts. */
function checkRelay({ RELAY_PUBLIC_KEY: publicKey, RELAY_PRIVATE_KEY: privateKey }: Variables): void {
  if (publicKey && privateKey && (publicKey.x !== privateKey.x || publicKey.y !== privateKey.y)) {
    throw new ConfigurationError('RELAY_PUBLIC_KEY', 'does not match RELAY_PRIVATE_KEY')
  }
}

/** The longest that a request can wait on Vercel, in seconds: vercel.json limits functions to 60. */
const LONGEST_WAIT_ON_VERCEL = 50

/** Vercel has no long-running process and no persistent disk, so nothing can be embedded there. */
function checkVercel(read: Variables): void {
  if (!read.VERCEL) return
  if (read.STELLAR_NETWORK === 'local' && !read.STELLAR_RPC_URL) {
    throw new ConfigurationError('STELLAR_NETWORK', 'the embedded ledger (local) cannot run on Vercel')
  }
  if (!read.DATABASE_URL && !read.POSTGRES_URL) {
    throw new ConfigurationError('DATABASE_URL', 'is required: the embedded database cannot run on Vercel')
  }
  if (!read.PUBLIC_URL && read.VERCEL_ENV !== 'development' && !hostsOf(read).some(Boolean)) {
    throw new ConfigurationError(
      'PUBLIC_URL',
      'is required because Vercel does not provide the host of this deployment',
    )
  }
  if (!read.SESSION_SECRET) throw new ConfigurationError('SESSION_SECRET', 'is required on Vercel')
  if (read.TRANSFER_WAIT > LONGEST_WAIT_ON_VERCEL) {
    throw new ConfigurationError(
      'TRANSFER_WAIT',
      `must be at most ${LONGEST_WAIT_ON_VERCEL} on Vercel, because functions are stopped after 60 seconds`,
    )
  }
}

/** Whether a variable is set, even if the configuration as a whole is invalid. */
export const isSet = (name: string): boolean => Boolean(processVariables()[name]?.trim())

/** Whether this process is Next's development server (`npm run dev`). */
export const isDevelopment = (): boolean => processVariables().NODE_ENV === 'development'

const processVariables = (): Record<string, string | undefined> => process.env

/**
 * Whether `error` reports an invalid or missing variable. A build may bundle the class twice, so this compares its name
 * instead of using `instanceof`.
 */
export const isConfigurationError = (error: unknown): error is ConfigurationError =>
  error instanceof Error && error.name === 'ConfigurationError'

let cached: Environment | undefined

/** The environment of this process, read and validated on first use. */
export function environment(): Environment {
  cached ??= readEnvironment(processVariables())
  return cached
}

/**
 * The environment of this process, or undefined if a variable is invalid or missing: for responses that do not depend
 * on a valid configuration.
 */
export function validEnvironment(): Environment | undefined {
  try {
    return environment()
  } catch (error) {
    if (isConfigurationError(error)) return undefined
    throw error
  }
}
