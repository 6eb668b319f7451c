import { ledgerOf } from '#lib/stellar/events.ts'
import { readConfidentialAccount } from './account.ts'
import { addOpenings, NOTHING, type Opening, opens } from './commitment.ts'
import { decryptAllowance, decryptBalance, decryptTransfer } from './decryption.ts'
import type { Deployment } from './deployment.ts'
import { type AccountEvent, readAccountEvents } from './events.ts'
import { deriveDelegationKey, type Holder } from './keys.ts'
import { WalletError } from './wallet-error.ts'

/**
 * The openings of an account's two commitments. Only the spendable balance can be paid out; `merge` moves the rest there.
 */
export interface Balance {
  spendable: Opening
  receiving: Opening
}

/** A balance and the cursor of the last event it includes. Secret: it shows what the account holds. */
export interface SyncedBalance extends Balance {
  cursor: string
}

/** The ledger that a balance was read through. */
export const ledgerOfBalance = ({ cursor }: Pick<SyncedBalance, 'cursor'>): number => ledgerOf(cursor)

/** The balance of a freshly registered account. */
export const EMPTY: Balance = { spendable: NOTHING, receiving: NOTHING }

/** An address and its viewing key: enough to read an account, not to spend. */
type Viewer = Pick<Holder, 'address'> & { keys: Pick<Holder['keys'], 'vk'> }

/**
 * The account may change between reading its events and its entry, so both are read again. If they still disagree
 * after this many rounds, events are missing.
 */
const ROUNDS = 5

/**
 * Rebuilds the balance of an account from its events after `known` (by default, all events that the RPC, usually for
 * seven days, and the deployment's archives keep), and checks it against the commitments in the account's entry.
 * @throws WalletError `not-registered`, `archive-unavailable`, or `history-incomplete` if neither the RPC nor an
 *   archive has all the events
 */
export async function syncBalance(
  deployment: Deployment,
  account: Viewer,
  known?: SyncedBalance,
): Promise<SyncedBalance> {
  let balance: Balance = known ?? EMPTY
  let since = known?.cursor
  let differing: string[] = []
  let archiveRead: string | undefined
  for (let round = 0; round < ROUNDS; round += 1) {
    deployment.signal?.throwIfAborted()
    const { events, cursor, archive } = await readAccountEvents(deployment, account.address, since)
    archiveRead ??= archive
    balance = events.reduce((before, event) => applyEvent(account, before, event), balance)
    const entry = await readConfidentialAccount(deployment.rpc, deployment.token, account.address)
    if (!entry) throw new WalletError('not-registered', `${account.address} has no confidential account`)
    const { spendable, receiving } = balance
    differing = [
      ...(opens(spendable, entry.spendable) ? [] : ['spendable']),
      ...(opens(receiving, entry.receiving) ? [] : ['receiving']),
    ]
    if (differing.length === 0) return { spendable, receiving, cursor }
    since = cursor
  }
  const names = differing.join(' and ')
  throw new WalletError(
    'history-incomplete',
    `the events do not account for the ${names} balance of ${account.address}: ${remedyFor(archiveRead)}`,
  )
}

/** How to proceed without the missing events. */
function remedyFor(archive: string | undefined): string {
  if (archive) return `${archive} lacks some or altered some. Nothing is lost on the ledger: try another archive`
  return 'the RPC no longer has all of them. Nothing is lost on the ledger: read the older ones from an archive'
}

/**
 * The balance after one of the account's events, in ledger order. Outgoing operations are checkpoints: they carry the
 * whole spendable balance for its owner, so earlier events no longer matter to it. A merge, a revoked delegation and a
 * clawback change the opening that the wallet already has.
 */
export function applyEvent({ address, keys: { vk } }: Viewer, balance: Balance, event: AccountEvent): Balance {
  const [first, second, third] = event.addresses
  switch (event.name) {
    case 'register':
      return EMPTY
    case 'merge':
      return merge(balance)
    case 'deposit':
      return receive(balance, second === address ? depositOf(event) : undefined)
    case 'transfer': {
      const received = receive(balance, second === address ? decryptTransfer(vk, event.fields) : undefined)
      return first === address ? checkpoint(received, vk, event) : received
    }
    case 'spender_transfer':
      return receive(balance, third === address ? decryptTransfer(vk, event.fields) : undefined)
    case 'withdraw':
    case 'set_spender':
      return first === address ? checkpoint(balance, vk, event) : balance
    case 'revoke_spender':
      return first === address && second !== undefined ? revoke(balance, vk, second, event) : balance
    case 'clawback':
      return first === address ? clawBack(balance, event) : balance
    default:
      return balance
  }
}

/** The balance once a merge has applied. */
export function merge(balance: Balance): Balance {
  return { spendable: addOpenings(balance.spendable, balance.receiving), receiving: NOTHING }
}

function receive(balance: Balance, received: Opening | undefined): Balance {
  return received ? { ...balance, receiving: addOpenings(balance.receiving, received) } : balance
}

function checkpoint(balance: Balance, vk: bigint, event: AccountEvent): Balance {
  return { ...balance, spendable: decryptBalance(vk, event.fields) ?? balance.spendable }
}

/** Adds the rest of a delegation's escrow. Its commitment is returned unchanged, so its blinding is added too. */
function revoke(balance: Balance, vk: bigint, spender: string, event: AccountEvent): Balance {
  const rest = decryptAllowance(deriveDelegationKey(vk, spender), event.fields)
  return rest ? { ...balance, spendable: addOpenings(balance.spendable, rest) } : balance
}

/** A clawback merges and then subtracts a public amount. */
function clawBack(balance: Balance, event: AccountEvent): Balance {
  const { amount } = event.fields
  if (typeof amount !== 'bigint') return balance
  const { spendable, receiving } = merge(balance)
  return { spendable: { ...spendable, value: spendable.value - amount }, receiving }
}

function depositOf(event: AccountEvent): Opening | undefined {
  const { amount } = event.fields
  return typeof amount === 'bigint' ? { value: amount, blinding: 0n } : undefined
}
