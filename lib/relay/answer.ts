import { isUnreachable } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { LineErrorCode } from '#lib/transfers/line-error.ts'
import { paymentsGoOn } from '#lib/transfers/stop.ts'
import { isOfTheMoment } from '#lib/transfers/verification.ts'
import { isAnyAble, recordProblem, setChannel } from './channel-state.ts'
import { checkChannels } from './check.ts'
import { type Ending, endLine } from './chores.ts'
import { type LeasedLine, type Leaving, leaveLine } from './lease.ts'
import { LineError, PASSING } from './line-error.ts'
import type { Relay } from './relay.ts'
import { requireUnpaid } from './run-line.ts'
import { noteMove } from './sequence.ts'

/** For the other errors of lines, the line is doubted if a lagging node may have caused them, and fails otherwise. */
const OF_LINES: Partial<Record<LineError['code'], Reaction>> = PASSING

/** What a host does about the sponsor's refusals. For the others, the line is doubted if they may pass, and fails otherwise. */
const OF_SPONSOR: Partial<Record<RefusalReason, Reaction>> = {
  // The sponsor's float is short, or the transaction has waited too long and is signed again.
  float: 'again',
  'would-fail': 'again',
  'expires-too-soon': 'again',
  sequence: 'again',
  'too-few-resources': 'again',
  'low-resource-fee': 'again',
  'no-account': 'again',
  // The channel has a transfer of another host open.
  'another-open': 'leave',
  payout: 'find-payer',
  // Every channel would get them.
  'quota-transfers': 'fail',
  'quota-stroops': 'fail',
  'daily-budget': 'fail',
}

type Reaction = keyof typeof REACTIONS
type Problem = LineError | SponsorRefusal

/** All of them but `again` leave or end the line. */
const REACTIONS = {
  again: async (_, line, error) => log('info', 'line waits', { ...nameOf(line), failure: error.message }),
  leave: async (relay, line) => await leaveLine(relay, line, { because: 'left' }),
  wait: async (relay, line) => await leaveLine(relay, line, { because: 'busy', seconds: relay.times.rest }),
  'wait-for-key': async (relay, line) => {
    log('error', 'amount cannot be opened', nameOf(line))
    await leaveLine(relay, line, { because: 'busy', seconds: relay.times.lag })
  },
  'stop-payments': async (relay, line) => {
    await noteMove(relay, line.channel)
    await leaveLine(relay, line, { because: 'left' })
  },
  'note-problem': async (relay, line, error) => {
    // It pays nothing until a check clears the problem.
    const problem = (error instanceof LineError ? error.problem : undefined) ?? 'account'
    log('info', 'channel unfit', { ...nameOf(line), problem })
    await recordProblem(relay, line.channel, problem)
    await leaveLine(relay, line, { because: 'left' })
  },
  'read-balance': async (relay, line, error) => {
    log('info', 'line waits', { ...nameOf(line), failure: describeFailure(error) })
    // The RPC's balance differs from the stored one, and either may be behind: a check reads it again, or finds that nothing can open
    // it. The stored opening stays until then, and the channel is checked only while it leases no line.
    await setChannel(relay, line.channel, { readAt: null })
    await leaveLine(relay, line, { because: 'left' })
    await checkChannels(relay)
  },
  'pass-on': passOn,
  'find-payer': findPayer,
  cancel: async (relay, line) => await finish(relay, line, { outcome: 'canceled' }),
  doubt: async (relay, line, error) => await doubt(relay, line, codeOf(error)),
  fail: async (relay, line, error) => await finish(relay, line, { outcome: 'failed', error: codeOf(error) }),
} satisfies Record<string, (relay: Relay, line: LeasedLine, error: Problem) => Promise<void>>

/** Does what an error means for a line: tries it again after a pause, or leaves it. @throws an error that does not concern the line */
export async function answer(relay: Relay, line: LeasedLine, error: unknown): Promise<'again' | 'left'> {
  if (!(error instanceof LineError || error instanceof SponsorRefusal)) {
    logFailure(error, nameOf(line))
    const isLedgers = (error instanceof LedgerError || error instanceof Refusal) && error.code === 'unavailable'
    if (isLedgers && (await relay.ledger.check())) return 'again'
    throw error
  }
  const reaction = reactionTo(line, error)
  await REACTIONS[reaction](relay, line, error)
  return reaction === 'again' ? 'again' : 'left'
}

function reactionTo(line: LeasedLine, error: Problem): Reaction {
  const isOfRun = line.payout !== null
  const known = error instanceof LineError ? OF_LINES[error.code] : OF_SPONSOR[error.reason]
  // The escrow of a run is read again with each attempt.
  if (known === 'read-balance' && isOfRun) return 'again'
  if (known) return known
  const mayLag = error instanceof LineError ? error.isDoubtful : isOfTheMoment(error.reason)
  if (mayLag && line.doubtedLedger === null) return 'doubt'
  const words = { ...nameOf(line), code: codeOf(error), failure: error.message }
  // The rows of a run may have been tampered with.
  if (error instanceof SponsorRefusal) log('error', 'sponsor refuses the relay', words)
  else if (isOfRun) log('error', 'payout of a run', words)
  return 'fail'
}

/** The code to store with a line that fails. All other codes of a LineError have a reaction of their own. */
const codeOf = (error: Problem) => (error instanceof LineError ? error.code : error.reason) as LineErrorCode

/** The line's payout could not be claimed: it was canceled or changed, or another transfer was faster. */
async function findPayer(relay: Relay, line: LeasedLine): Promise<void> {
  const payer = await requireUnpaid(await relay.database(), line).catch((error: unknown) => error)
  if (payer instanceof LineError) await answer(relay, line, payer)
  else if (payer) throw payer
  else await doubt(relay, line, 'manifest-invalid')
}

/** Leaves a line to other channels, because this one has too little for it. If none can have enough, the line is doubted. */
async function passOn(relay: Relay, line: LeasedLine): Promise<void> {
  const unable = [...line.unable, line.channel]
  if (!(await isAnyAble(relay, unable))) {
    // A channel that owned nothing may have been paid since it was checked.
    await checkChannels(relay)
    if (!(await isAnyAble(relay, unable))) return await doubt(relay, line, 'channels-short', unable)
  }
  await leaveLine(relay, line, { because: 'balance-short' })
}

/** A lagging node may rule a line out: it fails if it is ruled out again on every channel once no node can lag behind that response. */
async function doubt(relay: Relay, line: LeasedLine, error: LineErrorCode, unable = line.unable): Promise<void> {
  if (line.doubtedLedger !== null) return await finish(relay, line, { outcome: 'failed', error, unable })
  log('info', 'line doubted', { ...nameOf(line), error })
  await leaveLine(relay, line, postponed(relay, await relay.ledger.readLatest()))
}

export const postponed = ({ times: { lag } }: Relay, ledger: number): Leaving => ({
  because: 'doubted',
  ledger,
  seconds: lag,
})

/** Ends a line, or leaves it: an open transfer ends it itself, and during a stop the ledger may show that it was paid. */
async function finish(relay: Relay, line: LeasedLine, ending: Ending): Promise<void> {
  const error = ending.outcome === 'failed' ? ending.error : undefined
  // By the ledger's clock: what the employer pays itself afterwards is compared with this time.
  const store = { ...relay, now: relay.sponsor.now }
  const hasEnded = await endLine(store, line, ending, paymentsGoOn(relay.token))
  if (hasEnded) log('info', `line ${ending.outcome}`, { ...nameOf(line), error })
  else await leaveLine(relay, line, { because: 'left' })
}

export function logFailure(error: unknown, fields: Record<string, unknown>): void {
  const isOurs = error instanceof LedgerError || error instanceof LineError || error instanceof Refusal
  const isExpected = isUnreachable(error) || isOurs
  log(isExpected ? 'info' : 'error', 'line waits', { ...fields, failure: describeFailure(error) })
}

export const nameOf = ({ job, position, channel }: LeasedLine) => ({ job, line: position, channel })
