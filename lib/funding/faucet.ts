import type { Database } from '#lib/db/connection.ts'
import { lookUpRegistrations } from '#lib/directory/contractors/registration.ts'
import { Refusal } from '#lib/http/refusal.ts'
import type { Depositor } from './deposit.ts'
import type { Dispenser } from './dispenser.ts'
import { claimGrant, type Grant, returnClaim } from './grant-record.ts'

/** What the faucet gives, and how often. */
export interface FaucetRules {
  /** base units of each grant */
  amount: bigint
  /** seconds between two grants of one account */
  coolDown: number
  /** how long a request waits for the ledger, in milliseconds */
  patience: number
}

/** The faucet of a process: the account that mints, its rules, and what works for it. */
export interface Faucet extends Depositor {
  rules: FaucetRules
  dispenser: Dispenser
}

/** The deposit of this hash (64 hex digits) stands on the ledger; `merge` makes it spendable. */
export interface FaucetResult {
  hash: string
}

/** Number of the token's error for an account that is not registered. */
const NOT_REGISTERED = 3501

/** @throws Refusal `not-wired` when the service has no faucet key */
export function requireFaucet(faucet: Faucet | undefined): Faucet {
  if (!faucet) throw new Refusal('faucet-not-configured', 'no faucet is configured')
  return faucet
}

/**
 * Mints test USDC into the confidential balance of `account` (G… or C…) and waits for the ledger. A grant is one
 * deposit, however often and wherever it is asked for within the cool-down; what provably brought nothing is given back.
 * @throws Refusal `conflict` for an account that is not registered; `too-soon`; `failed` when nothing was granted;
 *   `unavailable` when the ledger cannot be asked, or has not said in time what became of the deposit
 */
export async function fund(db: Database, faucet: Faucet, account: string): Promise<FaucetResult> {
  await requireRegistration(faucet, account)
  const { amount, coolDown, patience } = faucet.rules
  const claimed = await claimGrant(db, { account, amount, coolDown })
  // Whoever looks takes up what an earlier process may have left open.
  faucet.dispenser.wake()
  if ('retryAfter' in claimed) {
    const { retryAfter } = claimed
    throw new Refusal('faucet-cooldown', `the faucet gives to an account once in ${coolDown} seconds`, { retryAfter })
  }
  const grant = await faucet.dispenser.follow(claimed.claim, patience)
  if (grant) return presentGrant(grant)
  if (await returnClaim(db, claimed.claim)) throw new Refusal('faucet-busy', 'the faucet is busy: nothing was granted')
  throw new Refusal('deposit-open', 'it is not known yet whether the deposit has arrived')
}

async function requireRegistration({ network, token }: Faucet, account: string): Promise<void> {
  const registrations = await lookUpRegistrations({ network, token }, [account])
  const state = registrations.get(account)?.state
  if (state === 'incompatible') throw new Refusal('not-wired', 'the configured contract is no confidential token')
  if (state !== 'registered' && state !== 'archived') throw unregistered()
}

function presentGrant({ status, hash, contractError }: Grant): FaucetResult {
  if (status === 'granted' && hash) return { hash }
  if (contractError === NOT_REGISTERED) throw unregistered()
  throw new Refusal('deposit-failed', 'the deposit failed')
}

function unregistered(): Refusal {
  return new Refusal('account-unregistered', 'the account is not registered with the confidential token')
}
