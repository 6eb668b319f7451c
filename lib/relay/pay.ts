import { describeFailure, log } from '#lib/observability/log.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { isBehindAll } from '#lib/stellar/view.ts'
import { sponsorChannel } from '#lib/transfers/submit.ts'
import type { Outcome } from '#lib/transfers/waiters.ts'
import { answer, logFailure, nameOf, postponed } from './answer.ts'
import { claimLine, type Hold, keepLease, type LeasedLine, leaseLine, leaveLine, ownerOf } from './lease.ts'
import { LineError } from './line-error.ts'
import { type Channel, keepTrying, type Relay, rest } from './relay.ts'
import { noteMove } from './sequence.ts'
import { type AheadProof, type PaymentStart, proveAhead, signLine } from './sign.ts'

/** A payment that this host has recorded, and whose transfer is open. */
interface OpenPayment extends Hold {
  /** the start of the channel's next payment, once the transfer has applied */
  next: PaymentStart
  /** resolves once the transfer has ended, however it did */
  ended: Promise<void>
}

export interface Host {
  /** whether the host can pay now: its RPC responds, and every channel was compared with the ledger */
  isReady(): boolean
  /** whether it can prove payments from a delegation */
  canRun(): boolean
  /** resolves when a line may be waiting, or the host may have become ready */
  wake(): Promise<void>
}

/**
 * Pays lines through one channel, until the relay closes: leases the next one in turn, proves its payment, records it, and goes
 * on to the next. While a payment is open, the next one is proved from what it will leave, and recorded when it has ended.
 */
export async function serveChannel(relay: Relay, channel: Channel, host: Host): Promise<void> {
  let open: OpenPayment | undefined
  while (!relay.signal.aborted) {
    // Taken first: a line may be written while this looks for one.
    const woken = host.wake()
    try {
      const line = host.isReady() ? await leaseLine(relay, channel, { held: open, canRun: host.canRun() }) : undefined
      if (line) open = await payLine(relay, channel, line, open)
      else if (open) {
        const { ended } = open
        if ((await Promise.race([ended.then(() => 'ended'), woken])) === 'ended') open = undefined
      } else await woken
    } catch (error) {
      logFailure(error, { channel: channel.address })
      // Another host may get further: this one leaves the channel alone for a while.
      await rest(relay, relay.times.rest)
    }
  }
}

/** The pause before the next attempt grows up to this multiple: what a line waits for may last. */
const MAX_RETRY_FACTOR = 5

/** Resolves to the open payment of the channel: this line's, or undefined if none was recorded for it. */
async function payLine(relay: Relay, channel: Channel, line: LeasedLine, before?: OpenPayment) {
  const until = performance.now() + relay.times.longestLease * 1000
  const release = keepLease(relay, line)
  let open: OpenPayment | undefined
  let hasFailed = false
  try {
    // A payment that cannot be proved in advance is proved when it is its turn.
    let proof = before && (await proveAhead(relay, channel, line, before.next).catch(notAhead(line)))
    await before?.ended
    for (let attempts = 1; !relay.signal.aborted; attempts += 1) {
      if (performance.now() > until) throw new LineError('ledger-stalled', 'this host cannot pay it for now')
      const attempt = await tryToPay(relay, channel, line, proof)
      if (attempt === 'left') break
      if ('transfer' in attempt) {
        open = { ...attempt, owner: ownerOf(line), ended: follow(relay, line, attempt.transfer) }
        break
      }
      proof = attempt.proof
      await rest(relay, relay.times.retry * Math.min(attempts, MAX_RETRY_FACTOR))
    }
    return open
  } catch (error) {
    hasFailed = true
    throw error
  } finally {
    release()
    // After an error, the other lines of the channel come first.
    const leaving = hasFailed
      ? ({ because: 'busy', seconds: relay.times.lag } as const)
      : ({ because: 'left' } as const)
    if (!open) await leaveLine(relay, line, leaving).catch((error) => logFailure(error, nameOf(line)))
  }
}

/** The payment, or `left` if this host has left the line, or the proof for the next attempt if the obstacle passes. */
type Attempt = Pick<OpenPayment, 'transfer' | 'next'> | { proof: AheadProof | undefined } | 'left'

/** Signs a line's payment and records it. @throws errors that nothing explains: this host leaves the channel alone */
async function tryToPay(relay: Relay, channel: Channel, line: LeasedLine, ahead?: AheadProof): Promise<Attempt> {
  let proof = ahead
  try {
    const doubted = line.doubtedLedger
    if (doubted !== null && !isBehindAll(doubted, await relay.ledger.readLatest())) {
      await leaveLine(relay, line, postponed(relay, doubted))
      return 'left'
    }
    const signed = await signLine(relay, channel, line, proof)
    proof = signed.proof
    const { signedXdr: signedXDR, number, sealedOpening, next, checked } = signed
    const { job, position, payout } = line
    const transfer = await sponsorChannel(
      { sponsor: relay.sponsor, tracker: relay.sponsor.tracker },
      {
        channel: channel.address,
        quotaAccount: line.quotaAccount,
        signedXDR,
        checked,
        line: { job, position, sealedOpening, claim: (tx) => claimLine(tx, relay, line, number) },
        ...(payout !== null && { delegated: { payoutId: payout } }),
      },
    )
    log('info', 'payment recorded', { ...nameOf(line), transfer })
    return { transfer, next }
  } catch (error) {
    relay.memory.lastPayments.delete(channel.address)
    if ((await answer(relay, line, error)) === 'left') return 'left'
    return { proof: mayKeepProof(error) ? proof : undefined }
  }
}

const notAhead = (line: LeasedLine) => (error: unknown) => {
  log('info', 'not proved ahead', { ...nameOf(line), failure: describeFailure(error) })
  return undefined
}

/** Whether a proof is still good after an error: another salt costs seconds, and no payment was recorded with this one. */
const mayKeepProof = (error: unknown): boolean =>
  !(error instanceof LineError) && !(error instanceof SponsorRefusal && error.reason === 'would-fail')

/** Follows a transfer until it has ended. What this process remembers of the channel is forgotten unless it has paid. */
async function follow(relay: Relay, line: LeasedLine, transfer: string): Promise<void> {
  const { tracker } = relay.sponsor
  for (let outcome: Outcome | undefined; !relay.signal.aborted; ) {
    ;[outcome] = await tracker.track([transfer], { waitMs: FOLLOW_MS })
    if (outcome?.kind !== 'settled' && outcome?.kind !== 'gone') continue
    if (outcome.kind === 'settled' && outcome.transfer.status === 'succeeded') return
    relay.memory.lastPayments.delete(line.channel)
    if (outcome.kind !== 'gone') return
    // Until the database can be written, and payments are stopped, the channel pays nothing more.
    const stop = () => noteMove(relay, line.channel)
    return await keepTrying(relay, relay.times.retry, stop, (error) => logFailure(error, nameOf(line)))
  }
}

/** How often (ms) a host that follows a transfer checks whether it closes. */
const FOLLOW_MS = 2_000
