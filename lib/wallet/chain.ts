import type { Transaction, xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'
import type { SignedSpending } from './calls.ts'
import { checkAmount, type Opening, subtractAmount } from './commitment.ts'
import type { Deployment } from './deployment.ts'
import { redirectResources } from './footprint.ts'
import type { Holder } from './keys.ts'
import { type Party, readParties } from './parties.ts'
import { authorizeAsSource, invoke, proveTransfer, startFrom } from './spending.ts'
import { buildCall, type CallOptions, readSource, signCall, simulateCall } from './transaction.ts'

interface Payout {
  /** Strkey of a registered account. */
  to: string
  /** Base units. */
  amount: bigint
}

/** One transfer of a chain; `next` is the sender's opening once it has applied. */
type Link = SignedSpending & Payout

/**
 * A link ends this much later than the one before it, for it can apply one ledger later at the earliest; never more
 * than LONGEST after the first was prepared, which is what sponsors take.
 */
const LINK_SECONDS = 10
const LONGEST = 300

/** The token extends an account's life to 30 days when fewer than 29 are left; both in ledgers of five seconds. */
const EXTENSION_DUE = 501_120
const EXTENSION_LIFE = 518_400
/** Rent of that extension for one account, rounded up, in stroops; what is not used comes back. */
const EXTENSION_RENT = 300_000n
/** Testnet asks a stroop for two ledgers of an account's life. We count half of that, so that no link declares too little. */
const LEDGERS_FOR_A_STROOP = 4n

/**
 * Prepares transfers ahead, from one known opening, with consecutive sequence numbers. They must apply in this order
 * and with nothing between that changes the sender's spendable balance: after a failure all later links are void, and
 * must be prepared anew. Only the first can be simulated, for the ledger does not know the balances that the others
 * start from: they take over its resources, and their authorization is what simulation would have recorded.
 *
 * Refuses as `buildTransfer`, before anything is signed; also `refused` for an archived recipient that is not the first,
 * since restoring an entry must be simulated, and for a chain that begins with a payment to the sender itself, which
 * touches less than those that would take over its resources.
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
  const party = await readParties(deployment, [from, ...payouts.map(({ to }) => to)])
  const unpayable = payouts.find(({ to }) => party(to).account.archived && to !== payouts[0]?.to)
  if (unpayable)
    throw new Refusal('refused', `the account of ${unpayable.to} is archived: pay it in a transfer of its own`)
  if (payouts.length > 1 && payouts[0]?.to === from)
    throw new Refusal('refused', 'a chain does not begin with its sender')

  const source = await readSource(deployment, holder.signer, options)
  const links: Link[] = []
  let start = startFrom(party(from).account, holder, opening)
  let first: { to: string; data: xdr.SorobanTransactionData } | undefined
  let rentOfFirst = 0n
  const paid = new Set([from])
  for (const [index, payout] of payouts.entries()) {
    const recipient = party(payout.to)
    const { name, args, next, spendableNext } = await proveTransfer(deployment, holder, start, {
      ...payout,
      viewingKey: recipient.account.viewingKey,
      auditorRecipient: recipient.auditor.key,
      auditorSender: party(from).auditor.key,
    })
    const timed = { ...options, seconds: secondsOf(index, options) }
    let transaction: Transaction
    if (first) {
      // The first pays rent for both its accounts. The others do not pay that again, and sponsors take no fee far above
      // the need.
      const margin = (isExtended(recipient) && !paid.has(payout.to) ? EXTENSION_RENT : 0n) - rentOfFirst
      const between = { first: first.to, other: payout.to }
      const data = redirectResources(first.data, between, recipient.auditor.footprint, margin)
      const auth = [authorizeAsSource(deployment, name, args)]
      transaction = buildCall(deployment, source, invoke(deployment, name, args, auth), timed, data)
    } else {
      const simulated = await simulateCall(deployment, source, invoke(deployment, name, args), timed)
      transaction = simulated.transaction
      first = { to: payout.to, data: simulated.data }
      rentOfFirst = leastRentOf(party(from)) + leastRentOf(recipient)
    }
    paid.add(payout.to)
    links.push({ ...signCall(transaction, holder.signer), ...payout, next })
    start = { spendable: spendableNext, opening: next }
  }
  return links
}

/** How many seconds a link is valid. */
function secondsOf(index: number, { seconds = 120 }: CallOptions): number {
  return Math.min(seconds + index * LINK_SECONDS, Math.max(LONGEST, seconds))
}

/** What the network asks at least for extending the account's life, in stroops; 0 where it is not due. */
const leastRentOf = (party: Party): bigint =>
  isExtended(party) ? BigInt(EXTENSION_LIFE - party.account.ledgersLeft) / LEDGERS_FOR_A_STROOP : 0n

/** Whether a call that touches the account extends its life, and pays rent for that. */
const isExtended = ({ account }: Party): boolean => account.ledgersLeft < EXTENSION_DUE
