import { isConfigurationError, isSet } from '#lib/config/environment.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { type Service, service } from './services.ts'

/** A variable that a payroll needs, and how to set it. */
interface MissingVariable {
  variable: string
  purpose: string
  remedy: string
}

const NEEDED: readonly MissingVariable[] = [
  {
    variable: 'DATABASE_URL',
    purpose: 'The PostgreSQL database with every record. Without it the service does not start on Vercel.',
    remedy: 'Connect a database to the project, such as Neon, which sets it.',
  },
  {
    variable: 'SESSION_SECRET',
    purpose: 'Signs the sessions. Without it the service does not start here.',
    remedy: 'Set 32 random bytes or more: openssl rand -hex 32',
  },
  {
    variable: 'OPERATOR_PASSWORD',
    purpose: 'Opens the operator dashboard.',
    remedy: 'Set a password of 8 characters or more.',
  },
  {
    variable: 'CONFIDENTIAL_TOKEN',
    purpose: 'The contract that pays. Without it no contractor becomes ready.',
    remedy: 'Run npm run setup in a clone, with the deployment document of a token: it writes the address to .env.',
  },
  {
    variable: 'SPONSOR_SEED',
    purpose: 'The account that pays the network fees. Without it every transfer is refused.',
    remedy: 'Run npm run setup in a clone: it creates and funds the account, and writes its seed to .env.',
  },
]

/** Seconds. Operators need at least a minute to set a variable. */
const RETRY_AFTER = 60

/**
 * The service of this process, for an API request.
 * @throws Refusal `not-configured` if a variable kept it from starting
 */
export async function configuredService(): Promise<Service> {
  return await service().catch((error: unknown) => {
    if (!isConfigurationError(error)) throw error
    const missing = unsetVariables().map(({ variable }) => variable)
    throw new Refusal('not-configured', `the service is not configured: ${error.message}`, {
      retryAfter: RETRY_AFTER,
      ...(missing.length > 0 && { details: { missing: missing.join(', ') } }),
    })
  })
}

const unsetVariables = () =>
  NEEDED.filter(({ variable }) => (variable === 'DATABASE_URL' ? !hasDatabase() : !isSet(variable)))

/** Everywhere but on Vercel, PGlite is the default. */
const hasDatabase = () => !isSet('VERCEL') || isSet('DATABASE_URL') || isSet('POSTGRES_URL')

/** Why the service of this process did not start, if it failed to, and the variables that a payroll still needs. */
export async function findMissingVariables(): Promise<{ problem: string | undefined; missing: MissingVariable[] }> {
  const unset = unsetVariables()
  try {
    const { settings } = await service()
    // The embedded default generates its own keys.
    const configured: Record<string, unknown> = {
      DATABASE_URL: true,
      SESSION_SECRET: true,
      OPERATOR_PASSWORD: settings.operator,
      CONFIDENTIAL_TOKEN: settings.token,
      SPONSOR_SEED: settings.sponsor,
    }
    return { problem: undefined, missing: unset.filter(({ variable }) => !configured[variable]) }
  } catch (error) {
    if (!isConfigurationError(error)) throw error
    return { problem: error.message, missing: unset }
  }
}
