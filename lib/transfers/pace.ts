/** The minimum and maximum number of ledgers over which the pace is measured: close times are whole seconds. */
const PACE_LEDGERS = { fewest: 8, most: 30 }

/** The last ledgers whose first sightings count: an error of the pace adds up. */
const SIGHTED_LEDGERS = 8

/** That moment is known well enough if it is within so many milliseconds. */
const PHASE_MS = 400

const LONGEST_PAUSE_MS = 5_000

/** One of the latest ledgers. When a response first and last named it as the latest, by the monotonic clock (ms). */
interface Step {
  ledger: number
  closedAt: number
  seenAt: number
  lastAt: number
}

/**
 * When the ledger after the last of these becomes visible. Ledgers close at a steady pace, so each sighting limits the moment
 * for all of them: it is not later than the first response that named a ledger, and not earlier than the last response that
 * named the one before. While the two are far apart, a response in the middle halves the distance.
 */
function nextVisibleAt(steps: readonly Step[], intervalMs: number): number {
  const next = Math.max(...steps.map(({ ledger }) => ledger)) + 1
  const sighted = steps.filter(({ ledger }) => ledger >= next - SIGHTED_LEDGERS)
  const surely = Math.min(...sighted.map(({ ledger, seenAt }) => seenAt + (next - ledger) * intervalMs))
  const notBefore = Math.max(...steps.map(({ ledger, lastAt }) => lastAt + (next - ledger - 1) * intervalMs))
  return surely - notBefore > PHASE_MS ? (surely + notBefore) / 2 : surely
}

/** How fast ledgers close, as the responses of the RPC show it. */
export interface Pace {
  /** Takes note of a response that names the latest ledger. */
  note(latest: { ledger: number; closedAt: number }): void
  /** How long (ms) until the next ledger is visible; at most LONGEST_PAUSE_MS. 0 while the pace is not known. */
  dueIn(): number
}

export function openPace(): Pace {
  let steps: Step[] = []

  function note({ ledger, closedAt }: { ledger: number; closedAt: number }): void {
    const last = steps.at(-1)
    const lastAt = performance.now()
    if (last?.ledger === ledger) last.lastAt = lastAt
    else {
      if (last && (ledger < last.ledger || closedAt < last.closedAt)) steps = []
      steps = [...steps, { ledger, closedAt, seenAt: lastAt, lastAt }].slice(-PACE_LEDGERS.most)
    }
  }

  function dueIn(): number {
    const [first, last] = [steps[0], steps.at(-1)]
    if (!first || !last || last.ledger - first.ledger < PACE_LEDGERS.fewest) return 0
    const intervalMs = ((last.closedAt - first.closedAt) / (last.ledger - first.ledger)) * 1000
    const waitMs = nextVisibleAt(steps, intervalMs) - performance.now()
    return Math.max(0, Math.min(waitMs, LONGEST_PAUSE_MS))
  }

  return { note, dueIn }
}
