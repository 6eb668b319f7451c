import { isConfigurationError, isSet } from '#lib/config/environment.ts'
import { service } from './services.ts'

/** A variable without which a payroll cannot be run, and how to come by it. */
export interface MissingVariable {
  variable: string
  purpose: string
  remedy: string
}

const NEEDED: readonly MissingVariable[] = [
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
    remedy: 'Run npm run setup in a clone: it makes a token on the test network and prints its address.',
  },
  {
    variable: 'SPONSOR_SEED',
    purpose: 'The account that pays the network fees. Without it every transfer is turned away.',
    remedy: 'Run npm run setup in a clone: it makes and funds the account and prints its seed.',
  },
]

/** Why the service of this process did not start, if it did not; and what is missing before a payroll can be run. */
export async function findMissingVariables(): Promise<{ problem: string | undefined; missing: MissingVariable[] }> {
  const unset = NEEDED.filter(({ variable }) => !isSet(variable))
  try {
    const { settings } = await service()
    // The embedded default brings keys of its own.
    const own = { SESSION_SECRET: true, OPERATOR_PASSWORD: settings.operator, CONFIDENTIAL_TOKEN: settings.token }
    const has: Record<string, unknown> = { ...own, SPONSOR_SEED: settings.sponsor }
    return { problem: undefined, missing: unset.filter(({ variable }) => !has[variable]) }
  } catch (error) {
    if (!isConfigurationError(error)) throw error
    return { problem: error.message, missing: unset }
  }
}
