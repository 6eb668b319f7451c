import { isUnreachable } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { isOfTheMoment } from '#lib/transfers/doubt.ts'
import type { LineErrorCode } from '#lib/transfers/line-error.ts'
import { paymentsGoOn } from '#lib/transfers/stop.ts'
import { isAnyAble, recordProblem, storeBalance } from './channel-state.ts'
import { checkChannels } from './check.ts'
import { type Ending, endLine } from './ending.ts'
import { type LeasedLine, type Leaving, leaveLine } from './lease.ts'
import { isLineError, LineError } from './line-error.ts'
import type { Relay } from './relay.ts'
import { requireUnpaid } from './run-line.ts'
import { noteMove } from './sequence.ts'

/** What an error means for a host: it tries the line again after a pause, or has left it. */
export type Answer = 'again' | 'left'

/** Decides what an error means for a line. @throws the error, if it says nothing about the line */
export async function answer(relay: Relay, line: LeasedLine, error: unknown): Promise<Answer> {
  if (error instanceof LineError) return await answerError(relay, line, error)
  if (error instanceof SponsorRefusal) return await answerRefusal(relay, line, error)
  logFailure(error, nameOf(line))
  const isLedgers = (error instanceof LedgerError || error instanceof Refusal) && error.code === 'unavailable'
  if (isLedgers && (await relay.ledger.check())) return 'again'
  throw error
}

async function answerError(relay: Relay, line: LeasedLine, error: LineError): Promise<Answer> {
  switch (error.code) {
    case 'line-gone':
    case 'payments-stopped':
    case 'channel-paused':
      return await leave(relay, line, { because: 'left' })
    case 'channel-moved':
      await noteMove(relay, line.channel)
      return await leave(relay, line, { because: 'left' })
    case 'channel-unfit':
      // It pays nothing until a check clears the problem.
      log('info', 'channel unfit', { ...nameOf(line), problem: error.problem })
      await recordProblem(relay, line.channel, error.problem ?? 'account')
      return await leave(relay, line, { because: 'left' })
    case 'balance-short':
      return await passOn(relay, line)
    case 'balance-stale':
      log('info', 'line waits', { ...nameOf(line), failure: describeFailure(error) })
      if (line.payout !== null) return 'again'
      // The RPC's balance differs from the stored one, and either may be behind: a check reads it again, or finds that nothing
      // can open it. The channel is checked only while it leases no line.
      await storeBalance(relay, line.channel, { readAt: null })
      await leave(relay, line, { because: 'left' })
      await checkChannels(relay)
      return 'left'
    case 'amount-sealed':
      log('error', 'amount cannot be opened', nameOf(line))
      return await leave(relay, line, { because: 'busy', seconds: relay.times.lag })
    case 'payout-gone':
      return await finish(relay, line, { outcome: 'canceled' })
    case 'payout-busy':
      return await leave(relay, line, { because: 'busy', seconds: relay.times.rest })
    case 'call-expired':
    case 'call-failed':
    case 'ledger-stalled':
    case 'not-adopted':
    case 'relay-closing':
      log('info', 'line waits', { ...nameOf(line), failure: error.message })
      return 'again'
    default:
      if (error.isDoubtful && line.doubtedLedger === null) return await doubt(relay, line, error.code)
      // The rows of a run may have been tampered with.
      if (line.payout !== null)
        log('error', 'payout of a run', { ...nameOf(line), code: error.code, failure: error.message })
      return await finish(relay, line, { outcome: 'failed', error: error.code })
  }
}

/** Refusals for a used-up quota: every channel would get them. Other refusals that end a line are logged as errors. */
const FINAL: ReadonlySet<RefusalReason> = new Set(['quota-transfers', 'quota-stroops', 'daily-budget'])
/** Refusals that pass: the sponsor's float is short, or the transaction has waited too long and is signed again. */
const PASSING: ReadonlySet<RefusalReason> = new Set([
  'float',
  'would-fail',
  'expires-too-soon',
  'sequence',
  'too-few-resources',
  'low-resource-fee',
  'no-account',
])

async function answerRefusal(relay: Relay, line: LeasedLine, { reason }: SponsorRefusal): Promise<Answer> {
  if (PASSING.has(reason)) {
    log('info', 'line waits', { ...nameOf(line), reason })
    return 'again'
  }
  // The channel has a transfer of another host open.
  if (reason === 'another-open') return await leave(relay, line, { because: 'left' })
  if (reason === 'payout') return await answerTakenPayout(relay, line)
  if (isOfTheMoment(reason)) return await doubt(relay, line, reason)
  if (!FINAL.has(reason)) log('error', 'sponsor refuses the relay', { ...nameOf(line), reason })
  return await finish(relay, line, { outcome: 'failed', error: reason })
}

/** The line's payout could not be claimed: it was canceled or changed, or another transfer was faster. */
async function answerTakenPayout(relay: Relay, line: LeasedLine): Promise<Answer> {
  try {
    await requireUnpaid(await relay.database(), line)
  } catch (error) {
    if (isLineError(error, 'payout-gone') || isLineError(error, 'payout-busy')) {
      return await answerError(relay, line, error)
    }
    throw error
  }
  return await doubt(relay, line, 'manifest-invalid')
}

/**
 * Leaves a line to other channels, because this one has too little for it. If none can have enough, the line is
 * doubted.
 */
async function passOn(relay: Relay, line: LeasedLine): Promise<'left'> {
  const unable = [...line.unable, line.channel]
  if (!(await isAnyAble(relay, unable))) {
    // A channel that owned nothing may have been paid since it was checked.
    await checkChannels(relay)
    if (!(await isAnyAble(relay, unable))) return await doubt(relay, line, 'channels-short', unable)
  }
  return await leave(relay, line, { because: 'balance-short' })
}

/**
 * A response that rules the line out may come from a lagging node. So the line is tried once more on every channel, when
 * no node can lag behind that response any more, and fails if the ledger still rules it out.
 */
async function doubt(relay: Relay, line: LeasedLine, error: LineErrorCode, unable = line.unable): Promise<'left'> {
  if (line.doubtedLedger !== null) return await finish(relay, line, { outcome: 'failed', error, unable })
  log('info', 'line doubted', { ...nameOf(line), error })
  return await leave(relay, line, postponed(relay, await relay.ledger.readLatest()))
}

export const postponed = ({ times }: Relay, ledger: number): Leaving => ({
  because: 'doubted',
  ledger,
  seconds: times.lag,
})

export async function leave(relay: Relay, line: LeasedLine, leaving: Leaving): Promise<'left'> {
  await leaveLine(relay, line, leaving)
  return 'left'
}

/** Ends a line, unless a transfer may pay it, which ends it then, or payments are stopped: the ledger may show that it was paid. */
async function finish(relay: Relay, line: LeasedLine, ending: Ending): Promise<'left'> {
  const error = ending.outcome === 'failed' ? ending.error : undefined
  // By the ledger's clock: what the employer pays itself afterwards is compared with this time.
  const store = { ...relay, now: relay.sponsor.now }
  if (await endLine(store, line, ending, paymentsGoOn(relay.token)))
    log('info', `line ${ending.outcome}`, { ...nameOf(line), error })
  else await leaveLine(relay, line, { because: 'left' })
  return 'left'
}

export function logFailure(error: unknown, fields: Record<string, unknown>): void {
  const isOurs = error instanceof LedgerError || error instanceof LineError || error instanceof Refusal
  const isExpected = isUnreachable(error) || isOurs
  log(isExpected ? 'info' : 'error', 'line waits', { ...fields, failure: describeFailure(error) })
}

export const nameOf = ({ job, position, channel }: LeasedLine) => ({ job, line: position, channel })
