import { publicHalf } from '#lib/config/relay-key.ts'
import { log } from '#lib/observability/log.ts'
import type { Relay } from './relay.ts'

/** What a host knows of itself. */
export interface HostState {
  /** why it serves no runs; null if it does, undefined until the ledger has responded */
  runProblem?: string | null
  /** whether every channel was compared with the ledger since the host started: any of them may have paid a line before */
  hasCompared: boolean
  /** whether one of its channels may pay, by the last check */
  hasFit: boolean
  isClockWrong: boolean
}

/** A host whose clock differs by more than this (seconds) has a problem: a ledger may close up to 10 s after another. */
const CLOCK_TOLERANCE_SECONDS = 30

/** The problem of this host's clock, if it has one. It is logged when it begins and when it ends. */
export function checkClock({ ledger }: Relay, state: HostState): string | undefined {
  const offset = ledger.offsetSeconds()
  const seconds = Math.abs(offset ?? 0)
  const isWrong = seconds > CLOCK_TOLERANCE_SECONDS
  const direction = (offset ?? 0) > 0 ? 'ahead of' : 'behind'
  const problem = isWrong ? `this host's clock is ${seconds} s ${direction} the ledger's: synchronise it` : undefined
  if (isWrong !== state.isClockWrong) log(isWrong ? 'error' : 'info', 'clock', { offsetSeconds: offset, problem })
  state.isClockWrong = isWrong
  return problem
}

/** The bodies of the relay's two public pages, by path. */
export function pages(relay: Relay, state: HostState, network: string): Record<string, unknown> {
  const problem = checkClock(relay, state)
  /** why this host can't pay */
  const problems = [
    ...(relay.ledger.isReachable() ? [] : ['the RPC does not respond: nothing is paid']),
    ...(state.hasCompared ? [] : ['the channels were not compared with the ledger yet: nothing is paid']),
    ...(state.hasFit ? [] : ['no channel of this host can pay']),
    ...(problem === undefined ? [] : [problem]),
  ]
  return {
    '/health': {
      ok: problems.length === 0,
      ledger: relay.ledger.isReachable(),
      clockOffsetSeconds: relay.ledger.offsetSeconds() ?? null,
      runs: state.runProblem === null,
      problems: [...problems, ...(state.runProblem ? [`no runs: ${state.runProblem}`] : [])],
    },
    '/.well-known/disbursement-relay': {
      network,
      networkPassphrase: relay.network.passphrase,
      contracts: { token: relay.token },
      channels: relay.channels.map(({ address }) => address),
      publicKey: publicHalf(relay.key),
    },
  }
}
