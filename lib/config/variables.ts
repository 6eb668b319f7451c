import { EMBEDDED_LEDGER, FAUCET, LEDGER, RELAY, SPONSOR } from './ledger-variables.ts'
import { DATABASE, MAIL, OPERATORS, PLACE, SESSIONS, VERCEL } from './service-variables.ts'

/**
 * Every variable with its schema and description. An absent or empty variable takes its default.
 * docs/configuration.md and .env.example are generated from these (`npm run docs`).
 */
export const VARIABLES = {
  ...PLACE,
  ...DATABASE,
  ...LEDGER,
  ...SESSIONS,
  ...SPONSOR,
  ...FAUCET,
  ...RELAY,
  ...MAIL,
  ...OPERATORS,
  ...EMBEDDED_LEDGER,
  ...VERCEL,
}

/** The variables by subject, in the order of the documentation. */
export const SECTIONS: [title: string, variables: Partial<typeof VARIABLES>][] = [
  ['Addresses', PLACE],
  ['Database', DATABASE],
  ['Ledger', LEDGER],
  ['Sessions', SESSIONS],
  ['Sponsor', SPONSOR],
  ['Faucet', FAUCET],
  ['Batch jobs and relays', RELAY],
  ['Mail', MAIL],
  ['Operators', OPERATORS],
  ['The embedded ledger', EMBEDDED_LEDGER],
  ['Set by Vercel', VERCEL],
]
