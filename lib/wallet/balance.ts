import { readConfidentialAccount } from './account.ts'
import { addOpenings, NOTHING, type Opening, opens } from './commitment.ts'
import { decryptBalance, decryptTransfer } from './decryption.ts'
import type { Deployment } from './deployment.ts'
import { type AccountEvent, readAccountEvents } from './events.ts'
import type { Holder } from './keys.ts'
import { WalletError } from './wallet-error.ts'

/** The openings of an account's two commitments. Only what is spendable can be paid out; `merge` moves the rest there. */
export interface Balance {
  spendable: Opening
  receiving: Opening
}

/** A balance and the place in the ledger's events up to which it is known. Secret: it shows what the account holds. */
export interface SyncedBalance extends Balance {
  cursor: string
}

/** The balance of a freshly registered account. */
export const EMPTY: Balance = { spendable: NOTHING, receiving: NOTHING }

/** An address and its viewing keys: enough to read an account, not to spend. */
type Viewer = Pick<Holder, 'address'> & { keys: Pick<Holder['keys'], 'vk'> }

/**
 * The account may change between reading its events and its entry, so both are read again. If they still disagree
 * after this many rounds, events are missing.
 */
const ROUNDS = 5

/**
 * Rebuilds the balance of an account from its events since it was `known` (by default all that the RPC keeps, seven days
 * as a rule), and proves it against the commitments of the ledger entry.
 *
 * WalletError `not-registered` if the account is not registered; `history-incomplete` if the events do not account for its balance, because
 * older ones are no longer kept or because something happened that this wallet does not follow (a revoked spender).
 */
export async function syncBalance(
  deployment: Deployment,
  account: Viewer,
  known?: SyncedBalance,
): Promise<SyncedBalance> {
  let balance: Balance = known ?? EMPTY
  let since = known?.cursor
  for (let round = 0; round < ROUNDS; round += 1) {
    const { events, cursor } = await readAccountEvents(deployment, account.address, since)
    balance = events.reduce((before, event) => applyEvent(account, before, event), balance)
    const entry = await readConfidentialAccount(deployment.rpc, deployment.token, account.address)
    if (!entry) throw new WalletError('not-registered', `${account.address} has no confidential account`)
    if (opens(balance.spendable, entry.spendable) && opens(balance.receiving, entry.receiving)) {
      return { spendable: balance.spendable, receiving: balance.receiving, cursor }
    }
    since = cursor
  }
  throw new WalletError('history-incomplete', `the events at hand do not account for the balance of ${account.address}`)
}

/**
 * The balance after one of the account's events, in ledger order. Outgoing operations are checkpoints: they carry the
 * whole new balance for its owner, so that nothing before them matters to what is spendable.
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

function depositOf(event: AccountEvent): Opening | undefined {
  const { amount } = event.fields
  return typeof amount === 'bigint' ? { value: amount, blinding: 0n } : undefined
}
