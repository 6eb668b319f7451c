import type { z } from 'zod'
import { secureUrl } from './shapes.ts'
import { VARIABLES } from './variables.ts'

/** A variable that is set to something unusable. Names the variable, never its value. */
export class ConfigurationError extends Error {
  readonly variable: string

  constructor(variable: string, problem: string) {
    super(`${variable}: ${problem}`)
    this.name = 'ConfigurationError'
    this.variable = variable
  }
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

/** Variables that only decide PUBLIC_URL and DATABASE_URL, and are left out of the result. */
type Raw = 'VERCEL_PROJECT_PRODUCTION_URL' | 'VERCEL_ENV' | 'VERCEL_BRANCH_URL' | 'VERCEL_URL' | 'POSTGRES_URL'

/** The validated environment: plain values, defaults filled in, keys that were not given still absent. */
export interface Environment extends Omit<Variables, Raw | 'PUBLIC_URL' | 'STELLAR_NETWORK'> {
  PUBLIC_URL: string
  STELLAR_NETWORK: 'local' | 'testnet'
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
  const { VERCEL_PROJECT_PRODUCTION_URL, VERCEL_ENV, VERCEL_BRANCH_URL, VERCEL_URL, POSTGRES_URL, ...environment } =
    read
  const publicUrl = locateService(read)
  if (!isHomeDomain(publicUrl)) {
    throw new ConfigurationError('PUBLIC_URL', `its host is not one of at most ${HOME_DOMAIN_BYTES} bytes (SEP-10)`)
  }
  if (read.DEVNET_PASSPHRASE === PUBLIC_PASSPHRASE) {
    throw new ConfigurationError('DEVNET_PASSPHRASE', 'is that of the main network; this service is for test networks')
  }
  checkProvider(read)
  checkMail(read)
  checkRelay(read)
  checkVercel(read)
  return {
    ...environment,
    DATABASE_URL: read.DATABASE_URL ?? POSTGRES_URL,
    PUBLIC_URL: publicUrl,
    STELLAR_NETWORK: read.STELLAR_NETWORK ?? (read.VERCEL ? 'testnet' : 'local'),
  }
}

/**
 * The address at which clients reach the service, by what is configured. A preview on Vercel is a service of its own:
 * its address is made of the name of its branch, which stays from one push to the next, unless that name is too long.
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

/** Half a provider is a mistake, and must not pass for none. */
function checkProvider({ IDP_ISSUER, IDP_AUDIENCE, IDP_JWKS_URL, IDP_CLIENT_ID }: Variables): void {
  if (IDP_ISSUER && !IDP_AUDIENCE) throw new ConfigurationError('IDP_AUDIENCE', 'is needed beside IDP_ISSUER')
  if (!IDP_ISSUER && (IDP_AUDIENCE || IDP_JWKS_URL)) {
    throw new ConfigurationError('IDP_ISSUER', 'is needed beside IDP_AUDIENCE and IDP_JWKS_URL')
  }
  if (IDP_CLIENT_ID && !secureUrl.safeParse(IDP_ISSUER).success) {
    throw new ConfigurationError('IDP_CLIENT_ID', 'needs an IDP_ISSUER that is an https URL, whose pages can be found')
  }
  if (IDP_ISSUER && !IDP_JWKS_URL && !secureUrl.safeParse(IDP_ISSUER).success) {
    throw new ConfigurationError('IDP_ISSUER', 'is no https URL that could be asked for its keys: give IDP_JWKS_URL')
  }
}

function checkMail({ SMTP_URL, MAIL_FROM }: Variables): void {
  if (SMTP_URL && !MAIL_FROM) throw new ConfigurationError('MAIL_FROM', 'is needed beside SMTP_URL')
  if (MAIL_FROM && !SMTP_URL) throw new ConfigurationError('SMTP_URL', 'is needed beside MAIL_FROM')
}

/** With two keys that do not belong together, no relay could open the amounts that the service has sealed. */
function checkRelay({ RELAY_PUBLIC_KEY: known, RELAY_PRIVATE_KEY: own }: Variables): void {
  if (known && own && (known.x !== own.x || known.y !== own.y)) {
    throw new ConfigurationError('RELAY_PUBLIC_KEY', 'is not that of RELAY_PRIVATE_KEY')
  }
}

/** The longest that a request may wait on Vercel, in seconds: vercel.json lets a function run for 60. */
const LONGEST_WAIT_ON_VERCEL = 50

/** On Vercel no process lasts and no disk is kept, so nothing can be embedded there. */
function checkVercel(read: Variables): void {
  if (!read.VERCEL) return
  if (read.STELLAR_NETWORK === 'local' && !read.STELLAR_RPC_URL) {
    throw new ConfigurationError('STELLAR_NETWORK', 'local is the embedded ledger, which cannot run on Vercel')
  }
  if (!read.DATABASE_URL && !read.POSTGRES_URL) {
    throw new ConfigurationError('DATABASE_URL', 'is needed: the embedded database cannot run on Vercel')
  }
  if (!read.PUBLIC_URL && read.VERCEL_ENV !== 'development' && !hostsOf(read).some(Boolean)) {
    throw new ConfigurationError('PUBLIC_URL', 'is needed where Vercel does not say under which host it serves')
  }
  if (!read.SESSION_SECRET) throw new ConfigurationError('SESSION_SECRET', 'is needed on Vercel')
  if (read.TRANSFER_WAIT > LONGEST_WAIT_ON_VERCEL) {
    throw new ConfigurationError('TRANSFER_WAIT', `is over ${LONGEST_WAIT_ON_VERCEL}: the function would end first`)
  }
}

/** Whether a variable is given at all, also where the configuration as a whole is not valid. */
export const isSet = (name: string): boolean => Boolean(given()[name])

const given = (): Record<string, string | undefined> => process.env

/**
 * Whether a variable is wrong or missing. A build may bundle the class twice, so its name tells, and not `instanceof`.
 */
export const isConfigurationError = (error: unknown): error is ConfigurationError =>
  error instanceof Error && error.name === 'ConfigurationError'

let known: Environment | undefined

/** The environment of this process, read and validated at first use. */
export function environment(): Environment {
  known ??= readEnvironment(given())
  return known
}

/**
 * The environment of this process, or undefined where a variable is wrong or missing: for answers that are given even
 * then.
 */
export function validEnvironment(): Environment | undefined {
  try {
    return environment()
  } catch (error) {
    if (isConfigurationError(error)) return undefined
    throw error
  }
}
