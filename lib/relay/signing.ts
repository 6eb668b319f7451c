import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { STALE_PROOF } from '#lib/stellar/confidential-token.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { buildTransfer, proveTransferAhead, type SignedSpending, signSpending } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Spending } from '#lib/wallet/spending.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { isConflict, openBalance, readBalance } from './balance.ts'
import { findChannels } from './channels.ts'
import { diagnose, isRegistered } from './diagnosis.ts'
import { type Item, storeSigned } from './items.ts'
import type { Channel, Relay } from './relay.ts'
import { sealOpening, unsealAmount } from './sealing.ts'

/**
 * The result of making a transfer for an item. `signed`: it is stored. `unpayable`: the item is at fault. `unfit`: the
 * channel has a problem. `short`: the channel has too little for this item. `stale`: the RPC sees another balance of the
 * channel than the stored one. `moved`: another worker has the item. `sealed`: the amount is sealed to another relay's
 * key.
 */
export type Signing =
  | { kind: 'signed'; item: Item; next: Opening }
  | { kind: 'unpayable'; error: string }
  | { kind: 'unfit'; problem: ChannelProblem }
  | { kind: 'short' }
  | { kind: 'stale' }
  | { kind: 'moved' }
  | { kind: 'sealed' }

/** The payee of an item's transfer (G… or C…), and its amount (base units). */
interface Terms {
  to: string
  amount: bigint
}

/** A transfer that was proved ahead. It is valid for these terms and this opening of the channel's balance only. */
export interface Proved extends Terms {
  channel: string
  opening: Opening
  spending: Spending
}

/**
 * Makes the transfer that is to pay an item, and stores it before it is sent. A proof contains one salt, so the caller
 * passes `proved` to one attempt only. Throws when ledger, database or prover fail: no transfer is stored then.
 */
export async function signItem(relay: Relay, channel: Channel, item: Item, proved?: Proved): Promise<Signing> {
  const terms = await readTerms(relay, channel, item)
  if ('kind' in terms) return terms
  try {
    const opening = await openBalance(relay, channel, terms.amount)
    if (!opening) return { kind: 'short' }
    const built =
      proved && isFor(proved, channel, terms, opening)
        ? await signSpending(await relay.deployment(), channel, proved.spending, { seconds: relay.times.validity })
        : await relay.showProgress(await relay.database(), item, () => build(relay, channel, terms, opening))
    return await store(relay, item, built)
  } catch (error) {
    return await judge(relay, { channel: channel.address, to: terms.to }, error)
  }
}

/**
 * Proves an item's transfer from the balance that the channel will have once its present item is paid. Undefined if
 * that balance is too low or the item cannot be paid: `signItem` finds out why when the item's turn comes.
 */
export async function proveAhead(
  relay: Relay,
  channel: Channel,
  item: Item,
  opening: Opening,
): Promise<Proved | undefined> {
  const terms = await readTerms(relay, channel, item)
  if ('kind' in terms || terms.amount > opening.value) return undefined
  const deployment = await relay.deployment()
  const spending = await relay.showProgress(await relay.database(), item, () =>
    proveTransferAhead(deployment, channel, { ...terms, opening }),
  )
  return { ...terms, channel: channel.address, opening, spending }
}

async function readTerms(relay: Relay, channel: Channel, item: Item): Promise<Terms | Signing> {
  const to = item.recipient ?? (await pickOther(relay, channel, item))
  if (!to) return { kind: 'unpayable', error: 'there is no other channel to pay' }
  const amount = await unsealAmount(relay.key, item, item.sealedAmount ?? '').catch(() => undefined)
  return amount === undefined ? { kind: 'sealed' } : { to, amount }
}

function isFor(proved: Proved, channel: Channel, { to, amount }: Terms, opening: Opening): boolean {
  const isSameBalance = proved.opening.value === opening.value && proved.opening.blinding === opening.blinding
  return isSameBalance && proved.channel === channel.address && proved.to === to && proved.amount === amount
}

async function build(relay: Relay, channel: Channel, terms: Terms, opening: Opening): Promise<SignedSpending> {
  const deployment = await relay.deployment()
  const from = (balance: Opening) =>
    buildTransfer(deployment, channel, { ...terms, opening: balance }, { seconds: relay.times.validity })
  return await from(opening).catch(async (error: unknown) => {
    if (!isConflict(error)) throw error
    // The balance has changed since its opening was stored: another relay or program has used the channel.
    return await from((await readBalance(relay, channel)).spendable)
  })
}

async function store(relay: Relay, item: Item, built: SignedSpending): Promise<Signing> {
  const sealedOpening = await sealOpening(publicHalf(relay.key), item.channel ?? '', built.next)
  const signed = { innerHash: built.hash, signedXdr: built.signedXdr, sealedOpening }
  const stored = await storeSigned(await relay.database(), item, signed)
  return stored ? { kind: 'signed', item: stored, next: built.next } : { kind: 'moved' }
}

/**
 * Tells whether the channel has a problem or the item is at fault when no transfer could be made. Any other error is
 * thrown on.
 */
async function judge(relay: Relay, { channel, to }: { channel: string; to: string }, error: unknown): Promise<Signing> {
  if (error instanceof LedgerError && error.code === 'unavailable') throw error
  const problem = await diagnose(relay, channel)
  if (problem) return { kind: 'unfit', problem }
  if (!(await isRegistered(relay, to))) return { kind: 'unpayable', error: 'the recipient is not registered' }
  if (isConflict(error)) return { kind: 'stale' }
  // The merge failed, as a rule because the channel has no XLM for the fee. Other channels may be able to pay.
  if (error instanceof Refusal && error.code === 'failed') return { kind: 'short' }
  if (!(error instanceof WalletError)) throw error
  const { code, contractError } = error
  // The balance of the channel changed between reading and simulating, or the node that simulates lags behind.
  if (contractError === STALE_PROOF) return { kind: 'stale' }
  if (code === 'balance-too-low') return { kind: 'short' }
  log('info', 'item cannot be paid', { channel, code, contractError })
  return { kind: 'unpayable', error: `the transfer would fail: contract error ${contractError ?? code}` }
}

/** A channel that no relay has announced for this long counts as abandoned, and no other channel pays it. */
const ABANDONED_AFTER_MS = 10 * 60_000

/** Another channel of the same token that is registered as far as is known. */
async function pickOther(relay: Relay, channel: Channel, { position }: Item): Promise<string | undefined> {
  const since = relay.now().getTime() - ABANDONED_AFTER_MS
  const others = (await findChannels(await relay.database(), relay.token)).filter(
    ({ address, problem, seenAt }) =>
      address !== channel.address && seenAt.getTime() >= since && (problem === null || problem === 'balance'),
  )
  return others[position % others.length]?.address
}
