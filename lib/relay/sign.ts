import { publicHalf } from '#lib/config/relay-key.ts'
import type { LedgerCheck } from '#lib/transfers/simulation.ts'
import {
  buildTransfer,
  proveTransferAhead,
  type SignedSpending,
  signEnforced,
  signSpending,
} from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import { type Allowance, proveDelegatedTransfer, type Spending } from '#lib/wallet/spending.ts'
import { isConflict, openBalance, readBalance } from './balance.ts'
import { findChannels } from './channel-state.ts'
import { explain, explainRun } from './explain.ts'
import { storeSigned } from './item.ts'
import { ItemError } from './item-error.ts'
import type { HeldItem, Item } from './item-row.ts'
import { requireUnpaidOnLedger } from './past-payments.ts'
import { markSalts, purposeOf } from './payment-mark.ts'
import type { Channel, Relay } from './relay.ts'
import { liveUntilOf, openEscrow, readLine, readPaymentKeys, requireCover, requireTime } from './run-item.ts'
import { sealOpening, unsealAmount } from './sealing.ts'
import { sequenceNumberOf } from './sequence.ts'

/** The payee of an item's transfer (G… or C…), and its amount (base units). */
interface Terms {
  to: string
  amount: bigint
}

/** The start of a channel's next payment: its own balance, or the escrow of an employer. */
export type PaymentStart = { opening: Opening } | { allowance: Allowance }

/** A payment that was proved ahead. It is valid for this purpose, these terms and this start only. */
export type AheadProof = Terms & { channel: string; purpose: string } & (
    | { opening: Opening; spending: Spending }
    | { allowance: Allowance; spending: DelegatedSpending }
  )

type DelegatedSpending = Awaited<ReturnType<typeof proveDelegatedTransfer>>

/** A signed item. */
export interface Signed {
  item: HeldItem
  /** the start of the channel's next payment, once the transfer has applied */
  next: PaymentStart
  /** the ledger's state for the transfer */
  checked?: LedgerCheck
}

/**
 * Signs the transfer that is to pay an item, and stores it before it is submitted. A proof contains one salt, so the
 * caller passes `proof` to one attempt only. Resolves to the signed item, and to the channel's opening once the
 * transfer has applied.
 * @throws ItemError; any other error when ledger, database or prover fail. No transfer is stored then
 */
export async function signItem(relay: Relay, channel: Channel, item: HeldItem, proof?: AheadProof): Promise<Signed> {
  await requireUnpaidOnLedger(relay, item)
  if (item.payout !== null) return await signRunItem(relay, channel, item, proof)
  const terms = await readTerms(relay, channel, item)
  try {
    const opening = await openBalance(relay, channel, terms.amount)
    if (!opening) throw new ItemError('balance-short', 'the channel has too little')
    const built =
      proof && 'opening' in proof && isFor(proof, channel, item, terms) && isSameOpening(proof.opening, opening)
        ? await signSpending(await relay.deployment(), channel, proof.spending, { seconds: relay.times.validity })
        : await relay.showProgress(await relay.database(), item, () => build(relay, channel, item, terms, opening))
    const sealedOpening = await sealOpening(publicHalf(relay.key), item.channel, built.next)
    const { hash: innerHash, signedXdr } = built
    const sequenceNumber = sequenceNumberOf(signedXdr, relay.network.passphrase)
    const signed = await storeSigned(relay, item, { innerHash, signedXdr, sealedOpening, sequenceNumber })
    return { item: signed, next: { opening: built.next } }
  } catch (error) {
    throw await explain(relay, { channel: channel.address, to: terms.to }, error)
  }
}

/** `signItem` for an item of a run: everything that the employer has signed is checked first. */
async function signRunItem(
  relay: Relay,
  channel: Channel,
  item: HeldItem,
  proof: AheadProof | undefined,
): Promise<Signed> {
  const run = await readLine(relay, channel, item)
  const terms = { to: run.line.address, amount: run.amount }
  try {
    const escrow = await openEscrow(relay, channel, run)
    const { allowance, own, source } = escrow
    // If anything fails from here on, the next attempt reads the ledger.
    relay.memory.lastPayments.delete(channel.address)
    await requireCover(relay, item, run, allowance)
    const deployment = await relay.deployment()
    const isProved =
      proof && 'allowance' in proof && isFor(proof, channel, item, terms) && isSame(proof.allowance, allowance)
    const spending = isProved
      ? proof.spending
      : await relay.showProgress(await relay.database(), item, () =>
          proveDelegatedTransfer(markSalts(deployment, channel, item, allowance), channel, allowance, {
            ...escrow,
            ...terms,
          }),
        )
    const built = await signEnforced(deployment, channel, spending, { seconds: relay.times.validity, source })
    const { hash: innerHash, signedXdr, simulation } = built
    requireTime(relay, run, simulation.latestLedger)
    const sequenceNumber = sequenceNumberOf(signedXdr, relay.network.passphrase)
    const signed = await storeSigned(relay, item, { innerHash, signedXdr, sealedOpening: null, sequenceNumber })
    const liveUntilLedger = liveUntilOf(run) ?? 0
    relay.memory.lastPayments.set(channel.address, { allowance: spending.rest, sequenceNumber, liveUntilLedger })
    return { item: signed, next: { allowance: spending.rest }, checked: { simulation, account: own } }
  } catch (error) {
    relay.memory.keys.forget()
    throw await explainRun(relay, channel.address, error)
  }
}

/** Whether two readings are of the same allowance: each payment leaves a new random salt. */
const isSame = (one: Allowance, other: Allowance) =>
  one.owner === other.owner && one.salt === other.salt && isSameOpening(one.opening, other.opening)

/** `proveAhead` for an item of a run. If the start is another employer's escrow, the item's is read from the ledger. */
async function proveRunItemAhead(
  relay: Relay,
  channel: Channel,
  item: Item,
  start: PaymentStart,
): Promise<AheadProof | undefined> {
  const run = await readLine(relay, channel, item)
  const terms = { to: run.line.address, amount: run.amount }
  const follows = 'allowance' in start && start.allowance.owner === run.owner
  const allowance = follows ? start.allowance : (await openEscrow(relay, channel, run)).allowance
  if (terms.amount > allowance.opening.value) return undefined
  const keys = await readPaymentKeys(relay, run)
  const deployment = markSalts(await relay.deployment(), channel, item, allowance)
  const spending = await relay.showProgress(await relay.database(), item, () =>
    proveDelegatedTransfer(deployment, channel, allowance, { ...keys, ...terms }),
  )
  return { ...terms, channel: channel.address, purpose: purposeOf(item), allowance, spending }
}

/**
 * Proves an item's transfer from the balance that the channel will have once its current item is paid. Undefined if that
 * balance is too low: `signItem` finds out why when it is the item's turn.
 * @throws ItemError
 */
export async function proveAhead(
  relay: Relay,
  channel: Channel,
  item: Item,
  start: PaymentStart,
): Promise<AheadProof | undefined> {
  if (item.payout !== null) return await proveRunItemAhead(relay, channel, item, start)
  // A payment from an escrow leaves the channel's own balance as it was, and this process may not know it.
  if (!('opening' in start)) return undefined
  const { opening } = start
  const terms = await readTerms(relay, channel, item)
  if (terms.amount > opening.value) return undefined
  const deployment = markSalts(await relay.deployment(), channel, item)
  const spending = await relay.showProgress(await relay.database(), item, () =>
    proveTransferAhead(deployment, channel, { ...terms, opening }),
  )
  return { ...terms, channel: channel.address, purpose: purposeOf(item), opening, spending }
}

async function readTerms(relay: Relay, channel: Channel, item: Item): Promise<Terms> {
  const to = item.recipient ?? (await pickOther(relay, channel, item))
  if (!to) throw new ItemError('unpayable', 'there is no other channel to pay')
  const amount = await unsealAmount(relay.key, item, item.sealedAmount ?? '').catch(() => undefined)
  if (amount === undefined) throw new ItemError('amount-sealed', 'the amount is sealed to another key')
  return { to, amount }
}

function isFor(proof: AheadProof, channel: Channel, item: Item, { to, amount }: Terms): boolean {
  const isSamePayment = proof.purpose === purposeOf(item) && proof.to === to && proof.amount === amount
  return proof.channel === channel.address && isSamePayment
}

const isSameOpening = (one: Opening, other: Opening) => one.value === other.value && one.blinding === other.blinding

async function build(
  relay: Relay,
  channel: Channel,
  item: Item,
  terms: Terms,
  opening: Opening,
): Promise<SignedSpending> {
  const deployment = markSalts(await relay.deployment(), channel, item)
  const from = (balance: Opening) =>
    buildTransfer(deployment, channel, { ...terms, opening: balance }, { seconds: relay.times.validity })
  return await from(opening).catch(async (error: unknown) => {
    if (!isConflict(error)) throw error
    // The balance has changed since its opening was stored, for instance by a payment to the channel that was merged.
    return await from((await readBalance(relay, channel)).spendable)
  })
}

/** A channel that no relay has announced for this long counts as abandoned, and no other channel pays it. */
const ABANDONED_AFTER_MS = 10 * 60_000

/** The problems of a channel that can still be paid: as far as the relay knows, it is registered. */
const PAYABLE: readonly (string | null)[] = [null, 'balance', 'moved']

async function pickOther(relay: Relay, channel: Channel, { position }: Item): Promise<string | undefined> {
  const since = relay.now().getTime() - ABANDONED_AFTER_MS
  const others = (await findChannels(await relay.database(), relay.token)).filter(
    ({ address, problem, seenAt }) =>
      address !== channel.address && seenAt.getTime() >= since && PAYABLE.includes(problem),
  )
  return others[position % others.length]?.address
}
