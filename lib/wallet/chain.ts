import type { Transaction, xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/refusal.ts'
import {
  type AuditorKey,
  type ConfidentialAccount,
  readAuditorKey,
  readConfidentialAccounts,
  registered,
} from './account.ts'
import type { SignedSpending } from './calls.ts'
import { checkAmount, type Opening, subtractAmount } from './commitment.ts'
import type { Deployment } from './deployment.ts'
import { redirectResources } from './footprint.ts'
import type { Holder } from './keys.ts'
import { authorizeAsSource, invoke, proveTransfer, startFrom } from './spending.ts'
import { buildCall, type CallOptions, readSource, signCall, simulateCall } from './transaction.ts'

export interface Payout {
  /** Strkey of a registered account. */
  to: string
  /** Base units. */
  amount: bigint
}

/** One transfer of a chain; `next` is the sender's opening once it has applied. */
export type Link = SignedSpending & Payout

/**
 * A link ends this much later than the one before it, for it can apply one ledger later at the earliest; never more
 * than LONGEST after the first was prepared, which is what sponsors take.
 */
const LINK_SECONDS = 10
const LONGEST = 300

/** The token extends an account's life to 30 days when fewer than 29 are left; both in ledgers of five seconds. */
const EXTENSION_DUE = 501_120
/** Rent of that extension for one account, rounded up, in stroops; what is not used comes back. */
const EXTENSION_RENT = 300_000n

/**
 * Prepares transfers ahead, from one known opening, with consecutive sequence numbers. They must apply in this order
 * and with nothing between that changes the sender's spendable balance: after a failure all later links are void, and
 * must be prepared anew. Only the first can be simulated, for the ledger does not know the balances that the others
 * start from: they take over its resources, and their authorization is what simulation would have recorded.
 *
 * Refuses as `buildTransfer`, before anything is signed; also `refused` for an archived recipient that is not the first,
 * since restoring an entry must be simulated: pay it by itself.
 */
export async function prepareChain(
  deployment: Deployment,
  holder: Holder,
  chain: { opening: Opening; payouts: readonly Payout[] },
  options: CallOptions = {},
): Promise<Link[]> {
  const { opening, payouts } = chain
  subtractAmount(
    opening.value,
    payouts.reduce((total, { amount }) => total + checkAmount(amount), 0n),
  )
  const from = holder.signer.publicKey()
  const parties = await readParties(deployment, from, payouts)
  const source = await readSource(deployment, holder.signer, options)
  const links: Link[] = []
  let start = startFrom(parties.sender, holder, opening)
  let first: First | undefined
  for (const [index, payout] of payouts.entries()) {
    const party = parties.recipient(payout.to)
    const { name, args, next, spendableNext } = await proveTransfer(deployment, holder, start, {
      ...payout,
      ...party.keys,
    })
    const seconds = Math.min((options.seconds ?? 120) + index * LINK_SECONDS, Math.max(LONGEST, options.seconds ?? 0))
    const timed = { ...options, seconds }
    let transaction: Transaction
    if (first) {
      const auth = [authorizeAsSource(deployment, name, args)]
      const data = redirectResources(
        first.data,
        { sender: from, first: first.to, other: payout.to },
        party.reading,
        party.extensionDue && !first.extensionDue ? EXTENSION_RENT : 0n,
      )
      transaction = buildCall(deployment, source, invoke(deployment, name, args, auth), timed, data)
    } else {
      const simulated = await simulateCall(deployment, source, invoke(deployment, name, args), timed)
      transaction = simulated.transaction
      first = { to: payout.to, data: simulated.data, extensionDue: party.extensionDue }
    }
    links.push({ ...signCall(transaction, holder.signer), ...payout, next })
    start = { spendable: spendableNext, opening: next }
  }
  return links
}

interface First {
  to: string
  data: xdr.SorobanTransactionData
  extensionDue: boolean
}

async function readParties(deployment: Deployment, from: string, payouts: readonly Payout[]) {
  const addresses = payouts.map(({ to }) => to)
  const accounts = await readConfidentialAccounts(deployment.rpc, deployment.token, [from, ...addresses])
  const sender = registered(accounts, from)
  const auditors = new Map<number, AuditorKey>()
  for (const [index, to] of addresses.entries()) {
    if (index > 0 && registered(accounts, to).archived && to !== addresses[0]) {
      throw new Refusal('refused', `the confidential account of ${to} is archived: pay it in a transfer of its own`)
    }
  }
  for (const id of new Set([from, ...addresses].map((address) => registered(accounts, address).auditorId))) {
    auditors.set(id, await readAuditorKey(deployment, id))
  }
  const auditorOf = (account: ConfidentialAccount) => {
    const auditor = auditors.get(account.auditorId)
    if (!auditor) throw new Error('every auditor has been read')
    return auditor
  }
  return {
    sender,
    recipient(address: string) {
      const account = registered(accounts, address)
      const { key: auditorRecipient, footprint: reading } = auditorOf(account)
      const keys = { viewingKey: account.viewingKey, auditorRecipient, auditorSender: auditorOf(sender).key }
      return { keys, reading, extensionDue: account.ledgersLeft < EXTENSION_DUE }
    },
  }
}
