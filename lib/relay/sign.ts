import { publicHalf } from '#lib/config/relay-key.ts'
import type { LedgerCheck } from '#lib/transfers/simulation.ts'
import { proveTransferAhead, proveTransferNow, signSpending, signWithSimulation } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { type Allowance, proveDelegatedTransfer, type Spending } from '#lib/wallet/spending.ts'
import { isConflict, openBalance, readBalance } from './balance.ts'
import { findChannels } from './channel-state.ts'
import { explain } from './check.ts'
import type { LeasedLine } from './lease.ts'
import { LineError } from './line-error.ts'
import type { PaymentKeys } from './party-keys.ts'
import { requireUnpaidByEmployer, requireUnpaidOnLedger } from './past-payments.ts'
import { markSalts, purposeOf } from './payment-mark.ts'
import type { Channel, Relay } from './relay.ts'
import { openEscrow, readLine, readPaymentKeys, requireCover, requireTime } from './run-line.ts'
import { sealOpening, unsealAmount } from './sealing.ts'
import { sequenceNumberOf } from './sequence.ts'

/** The payee of a line's transfer (G… or C…), and its amount (base units). */
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

/** A signed payment, which nothing has stored yet. */
export interface Signed {
  /** base64 XDR, and the sequence number that it uses */
  signedXdr: string
  number: bigint
  /** the channel's opening once the payment has applied, as a JWE for the relay; null for a payment from an escrow */
  sealedOpening: string | null
  /** its proof: valid for the next attempt, too, if nothing is recorded now */
  proof: AheadProof
  /** the start of the channel's next payment, once this one has applied */
  next: PaymentStart
  /** the ledger's state for the transfer */
  checked?: LedgerCheck
}

/**
 * Proves and signs the transfer that is to pay a line. Nothing but its record may send it.
 * @param ahead a proof that was made for it before; a proof contains one salt, so none is used for two recorded transfers
 * @throws LineError; any other error when ledger, database or prover fail
 */
export async function signLine(relay: Relay, channel: Channel, line: LeasedLine, ahead?: AheadProof): Promise<Signed> {
  await requireUnpaidOnLedger(relay, line)
  if (line.payout !== null) return await signRunLine(relay, channel, line, ahead)
  const terms = await readTerms(relay, channel, line)
  try {
    const opening = await openBalance(relay, channel, terms.amount)
    if (!opening) throw new LineError('balance-short', 'the channel has too little')
    const isProved =
      ahead && 'opening' in ahead && isFor(ahead, channel, line, terms) && isSameOpening(ahead.opening, opening)
    const proof = isProved ? ahead : await proveFromBalance(relay, channel, line, { ...terms, opening })
    const deployment = await relay.deployment()
    const built = await signSpending(deployment, channel, proof.spending, { seconds: relay.times.validity })
    const { signedXdr, next } = built
    const sealedOpening = await sealOpening(publicHalf(relay.key), channel.address, next)
    const number = sequenceNumberOf(signedXdr, relay.network.passphrase)
    return { signedXdr, number, sealedOpening, proof, next: { opening: next } }
  } catch (error) {
    throw await explain(relay, { channel: channel.address, to: terms.to }, error)
  }
}

/** `signLine` for a line of a run: everything that the employer has signed is checked first. */
async function signRunLine(relay: Relay, channel: Channel, line: LeasedLine, ahead?: AheadProof): Promise<Signed> {
  const run = await readLine(relay, channel, line)
  const terms = { to: run.line.address, amount: run.amount }
  try {
    const escrow = await openEscrow(relay, channel, run)
    const { allowance, own, source } = escrow
    // If anything fails from here on, the next attempt reads the ledger.
    relay.memory.lastPayments.delete(channel.address)
    await requireCover(relay, line, run, allowance)
    await requireUnpaidByEmployer(relay, line, run.owner)
    const deployment = await relay.deployment()
    const isProved =
      ahead && 'allowance' in ahead && isFor(ahead, channel, line, terms) && isSame(ahead.allowance, allowance)
    const proof = isProved ? ahead : await proveFromEscrow(relay, channel, line, { ...escrow, ...terms })
    const built = await signWithSimulation(deployment, channel, proof.spending, {
      seconds: relay.times.validity,
      source,
    })
    const { signedXdr, simulation } = built
    requireTime(relay, run, simulation.latestLedger)
    const number = sequenceNumberOf(signedXdr, relay.network.passphrase)
    const { rest } = proof.spending
    const { liveUntil } = run
    relay.memory.lastPayments.set(channel.address, { allowance: rest, sequenceNumber: number, liveUntil })
    const checked = { simulation, account: own }
    return { signedXdr, number, sealedOpening: null, proof, next: { allowance: rest }, checked }
  } catch (error) {
    relay.memory.keys.forget()
    throw await explain(relay, { channel: channel.address }, error)
  }
}

/** Whether two readings are of the same allowance: each payment leaves a new random salt. */
const isSame = (one: Allowance, other: Allowance) =>
  one.owner === other.owner && one.salt === other.salt && isSameOpening(one.opening, other.opening)

/**
 * Proves a line's transfer from the start that the channel's open transfer will leave. Undefined if that is too low: `signLine` finds out
 * why when it is the line's turn. If the start is another employer's escrow, the line's is read from the ledger.
 * @throws LineError
 */
export async function proveAhead(
  relay: Relay,
  channel: Channel,
  line: LeasedLine,
  start: PaymentStart,
): Promise<AheadProof | undefined> {
  if (line.payout !== null) {
    const run = await readLine(relay, channel, line)
    const follows = 'allowance' in start && start.allowance.owner === run.owner
    const allowance = follows ? start.allowance : (await openEscrow(relay, channel, run)).allowance
    if (run.amount > allowance.opening.value) return undefined
    const terms = { to: run.line.address, amount: run.amount, allowance }
    return await proveFromEscrow(relay, channel, line, { ...terms, ...(await readPaymentKeys(relay, run)) })
  }
  // A payment from an escrow leaves the channel's own balance as it was, and this process may not know it.
  if (!('opening' in start)) return undefined
  const { opening } = start
  const terms = await readTerms(relay, channel, line)
  if (terms.amount > opening.value) return undefined
  const spending = await prove(relay, channel, line, undefined, (deployment) =>
    proveTransferAhead(deployment, channel, { ...terms, opening }),
  )
  return { ...terms, channel: channel.address, purpose: purposeOf(line), opening, spending }
}

async function proveFromEscrow(
  relay: Relay,
  channel: Channel,
  line: LeasedLine,
  { allowance, to, amount, ...keys }: Terms & PaymentKeys & { allowance: Allowance },
): Promise<AheadProof & { spending: DelegatedSpending }> {
  const spending = await prove(relay, channel, line, allowance, (deployment) =>
    proveDelegatedTransfer(deployment, channel, allowance, { ...keys, to, amount }),
  )
  return { to, amount, channel: channel.address, purpose: purposeOf(line), allowance, spending }
}

/** Proves a line's transfer from the channel's own balance. */
async function proveFromBalance(
  relay: Relay,
  channel: Channel,
  line: LeasedLine,
  { opening, ...terms }: Terms & { opening: Opening },
): Promise<AheadProof & { opening: Opening }> {
  return await prove(relay, channel, line, undefined, async (deployment) => {
    const from = async (balance: Opening) => {
      const spending = await proveTransferNow(deployment, channel, { ...terms, opening: balance })
      return { ...terms, channel: channel.address, purpose: purposeOf(line), opening: balance, spending }
    }
    return await from(opening).catch(async (error: unknown) => {
      if (!isConflict(error)) throw error
      // The balance has changed since its opening was stored, for instance by a payment to the channel that was merged.
      return await from((await readBalance(relay, channel)).spendable)
    })
  })
}

/** Proves a line's transfer with salts that are marked with its purpose, and logs the progress. */
async function prove<Proof>(
  relay: Relay,
  channel: Channel,
  line: LeasedLine,
  allowance: Allowance | undefined,
  work: (deployment: Deployment) => Promise<Proof>,
): Promise<Proof> {
  const deployment = markSalts(await relay.deployment(), channel, line, allowance)
  return await relay.showProgress(await relay.database(), line, () => work(deployment))
}

async function readTerms(relay: Relay, channel: Channel, line: LeasedLine): Promise<Terms> {
  const to = line.recipient ?? (await pickOther(relay, channel, line))
  if (!to) throw new LineError('no-other-channel', 'there is no other channel to pay', { isDoubtful: true })
  const amount = await unsealAmount(relay.key, line, line.sealedAmount ?? '').catch(() => undefined)
  if (amount === undefined) throw new LineError('amount-sealed', 'the amount is sealed to another key')
  return { to, amount }
}

function isFor(proof: AheadProof, channel: Channel, line: LeasedLine, { to, amount }: Terms): boolean {
  const isSamePayment = proof.purpose === purposeOf(line) && proof.to === to && proof.amount === amount
  return proof.channel === channel.address && isSamePayment
}

const isSameOpening = (one: Opening, other: Opening) => one.value === other.value && one.blinding === other.blinding

/** A channel that no relay has announced for this long counts as abandoned, and no other channel pays it. */
const ABANDONED_AFTER_MS = 10 * 60_000

/** The problems of a channel that can still be paid: as far as the relay knows, it is registered. */
const PAYABLE: readonly (string | null)[] = [null, 'balance']

async function pickOther(relay: Relay, channel: Channel, { position }: LeasedLine): Promise<string | undefined> {
  const since = relay.now().getTime() - ABANDONED_AFTER_MS
  const others = (await findChannels(await relay.database(), relay.token)).filter(
    ({ address, problem, seenAt, retired }) =>
      address !== channel.address && !retired && seenAt.getTime() >= since && PAYABLE.includes(problem),
  )
  return others[position % others.length]?.address
}
