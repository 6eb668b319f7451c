import { and, inArray, isNotNull } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { lookUpViewingKeys } from '#lib/directory/contractors/registration.ts'
import { admitUser, provenAccounts } from '#lib/directory/users.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Transfer } from '#lib/transfers/rows.ts'
import type { Depositor, Granting } from './deposit.ts'
import { type EarlierGrant, findDepositHash } from './grants.ts'

export interface FaucetRules {
  /** base units of each grant */
  amount: bigint
  /** seconds between two grants of one account */
  coolDown: number
  /** how long a request waits for the ledger, in milliseconds */
  patience: number
}

/** The faucet of this process: the account that mints, its limits, and the builder of its deposits. */
export interface Faucet extends Depositor {
  rules: FaucetRules
  granting: Granting
}

/** The deposit with this hash (64 hex digits) was applied; `merge` makes it spendable. */
interface FaucetResult {
  hash: string
}

/** Number of the token's error for an account that is not registered. */
const NOT_REGISTERED = 3501

/** @throws Refusal `faucet-not-configured` when the service has no faucet key */
export function requireFaucet(faucet: Faucet | undefined): Faucet {
  if (!faucet) throw new Refusal('faucet-not-configured')
  return faucet
}

/**
 * Mints test USDC into the confidential balance of `account` (G… or C…) and waits for the ledger. Within the cool-down
 * an account gets one deposit, no matter how many requests it sends to how many processes. If the deposit was provably
 * not applied, the account may request another immediately.
 * @throws Refusal `account-unregistered`; `faucet-cooldown`, with the `hash` of the last grant; `deposit-failed` when
 *   nothing was granted; `unavailable`, `faucet-busy`, `deposit-open`
 */
export async function fund(db: Database, faucet: Faucet, account: string): Promise<FaucetResult> {
  await requireRegistration(faucet, account)
  const { amount, coolDown, patience } = faucet.rules
  const deadline = performance.now() + patience
  for (;;) {
    const left = deadline - performance.now()
    const outcome = await faucet.granting.grant(db, { account, amount, coolDown }, left)
    if (outcome.kind === 'too-soon') throw await tooSoon(db, outcome.earlier, coolDown)
    if (outcome.kind === 'impossible') throw failed(outcome.contractError)
    if (outcome.kind !== 'settled') throw new Refusal(outcome.kind === 'busy' ? 'faucet-busy' : 'deposit-open')
    const { transfer } = outcome
    if (transfer.status === 'succeeded' && transfer.hash !== null) return { hash: transfer.hash }
    if (transfer.status === 'unknown') throw new Refusal('deposit-open')
    // Another program used the faucet's sequence number first: nothing was deposited.
    if (!wasOvertaken(transfer) || performance.now() >= deadline) throw failed(transfer.contractError)
  }
}

/** Whether another transaction has used the deposit's sequence number. */
const wasOvertaken = ({ status, resultCode }: Transfer) => status === 'expired' && resultCode !== null

async function tooSoon(db: Database, { retryAfter, transfer }: EarlierGrant, coolDown: number): Promise<Refusal> {
  const hash = await findDepositHash(db, transfer)
  const message = `the faucet funds an account once every ${coolDown} seconds`
  return new Refusal('faucet-cooldown', message, { retryAfter, ...(hash !== undefined && { details: { hash } }) })
}

async function requireRegistration({ network, token }: Faucet, account: string): Promise<void> {
  const key = (await lookUpViewingKeys({ network, token }, [account])).get(account)
  if (key === null) throw new Refusal('not-wired', 'the configured contract is not a confidential token')
  if (key === undefined) throw unregistered()
}

function failed(contractError: number | null): Refusal {
  if (contractError === NOT_REGISTERED) return unregistered()
  return new Refusal('deposit-failed', 'the deposit failed')
}

function unregistered(): Refusal {
  return new Refusal('account-unregistered')
}

/**
 * The ledger account of a user: that of a wallet session, else the first wallet that is joined to the user, else the
 * address of the newest linked contractor record that has one.
 * @throws Refusal `account-missing` when there is none
 */
export async function findLedgerAccount(db: Database, session: Session, now: Date): Promise<string> {
  if (session.kind === 'ledger') return session.sub
  const user = await admitUser({ db, now }, session)
  const [joined] = await provenAccounts(db, user)
  if (joined !== undefined) return joined
  const ids = user.records.map(({ id }) => id)
  const rows =
    ids.length === 0
      ? []
      : await db
          .select({ id: contractors.id, address: contractors.address })
          .from(contractors)
          .where(and(inArray(contractors.id, ids), isNotNull(contractors.address)))
  const [newest] = rows.sort((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id))
  if (!newest?.address) throw new Refusal('account-missing')
  return newest.address
}
