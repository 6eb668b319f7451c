import { and, desc, inArray, isNotNull } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { lookUpViewingKeys } from '#lib/directory/contractors/registration.ts'
import { admitUser, provenAccounts } from '#lib/directory/users.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { findTransfer } from '#lib/transfers/rows.ts'
import type { Depositor, EarlierGrant, Granting } from './deposit.ts'

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

/** Number of the token's error for an account that is not registered. */
const NOT_REGISTERED = 3501

/** @throws Refusal `faucet-not-configured` when the service has no faucet key */
export function requireFaucet(faucet: Faucet | undefined): Faucet {
  if (!faucet) throw new Refusal('faucet-not-configured')
  return faucet
}

/**
 * Mints test USDC into the confidential balance of `account` (G… or C…) and waits for the ledger. Resolves to the hash (64 hex
 * digits) of the deposit; `merge` makes it spendable. Within the cool-down an account gets one deposit, no matter how many requests
 * it sends to how many processes. If the deposit was provably not applied, the account may request another immediately.
 * @throws Refusal `account-unregistered`; `faucet-cooldown`, with the `hash` of the last grant; `deposit-failed` when
 *   nothing was granted; `unavailable`, `faucet-busy`, `deposit-open`
 */
export async function fund(db: Database, faucet: Faucet, account: string): Promise<{ hash: string }> {
  await requireRegistration(faucet, account)
  const { amount, coolDown, patience } = faucet.rules
  const outcome = await faucet.granting.grant(db, { account, amount, coolDown }, patience)
  if (outcome.kind === 'too-soon') throw await tooSoon(db, outcome.earlier, coolDown)
  if (outcome.kind === 'impossible') throw failed(outcome.contractError)
  if (outcome.kind !== 'settled') throw new Refusal(outcome.kind === 'busy' ? 'faucet-busy' : 'deposit-open')
  const { status, hash, contractError } = outcome.transfer
  if (status === 'succeeded' && hash !== null) return { hash }
  throw status === 'unknown' ? new Refusal('deposit-open') : failed(contractError)
}

async function tooSoon(db: Database, { retryAfter, transfer }: EarlierGrant, coolDown: number): Promise<Refusal> {
  const deposit = await findTransfer(db, transfer)
  // The hash of the deposit that was applied, or that may still be.
  const hash = deposit?.transfer.hash ?? deposit?.envelopes[0]?.innerHash
  const message = `the faucet funds an account once every ${coolDown} seconds`
  return new Refusal('faucet-cooldown', message, { retryAfter, ...(hash !== undefined && { details: { hash } }) })
}

async function requireRegistration({ network, token }: Faucet, account: string): Promise<void> {
  const key = (await lookUpViewingKeys({ network, token }, [account])).get(account)
  if (key === null) throw new Refusal('not-wired', 'the configured contract is not a confidential token')
  if (key === undefined) throw unregistered()
}

const unregistered = () => new Refusal('account-unregistered')

const failed = (contractError: number | null): Refusal =>
  contractError === NOT_REGISTERED ? unregistered() : new Refusal('deposit-failed', 'the deposit failed')

/**
 * The ledger account of a user: that of a wallet session, else the first wallet that is joined to the user, else the
 * address of the newest linked contractor record that has one.
 * @throws Refusal `account-missing` when there is none
 */
export async function findLedgerAccount(db: Database, session: Session, now: Date): Promise<string> {
  if (session.kind === 'ledger') return session.sub
  const user = await admitUser({ db, now }, session)
  const [joined] = provenAccounts(user)
  if (joined !== undefined) return joined
  const isRecord = inArray(
    contractors.id,
    user.records.map(({ id }) => id),
  )
  const [newest] = await db
    .select({ address: contractors.address })
    .from(contractors)
    .where(and(isRecord, isNotNull(contractors.address)))
    .orderBy(desc(contractors.createdAt), desc(contractors.sequence))
    .limit(1)
  if (!newest?.address) throw new Refusal('account-missing')
  return newest.address
}
