/** The minimum and maximum number of ledgers over which the pace is measured: close times are whole seconds. */
const PACE_LEDGERS = { fewest: 8, most: 30 }

/** The last ledgers whose first sightings count: an error of the pace adds up. */
const SIGHTED_LEDGERS = 8

/** A process that saw none of so many ledgers begins anew. */
const LONGEST_JUMP = 1_000

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
  /** Seconds between two ledgers; undefined while the pace is not known. */
  secondsPerLedger(): number | undefined
  /** The time by the ledgers' close times (unix ms): the freshest sighting counts. Undefined before the first. */
  now(): number | undefined
}

export function openPace(): Pace {
  let steps: Step[] = []

  function note({ ledger, closedAt }: { ledger: number; closedAt: number }): void {
    const last = steps.at(-1)
    const lastAt = performance.now()
    if (last?.ledger === ledger) last.lastAt = lastAt
    else {
      if (last && (ledger < last.ledger || closedAt < last.closedAt || ledger > last.ledger + LONGEST_JUMP)) steps = []
      steps = [...steps, { ledger, closedAt, seenAt: lastAt, lastAt }].slice(-PACE_LEDGERS.most)
    }
  }

  function secondsPerLedger(): number | undefined {
    const [first, last] = [steps[0], steps.at(-1)]
    if (!first || !last || last.ledger - first.ledger < PACE_LEDGERS.fewest) return undefined
    return (last.closedAt - first.closedAt) / (last.ledger - first.ledger)
  }

  function dueIn(): number {
    const seconds = secondsPerLedger()
    if (seconds === undefined) return 0
    const waitMs = nextVisibleAt(steps, seconds * 1000) - performance.now()
    return Math.max(0, Math.min(waitMs, LONGEST_PAUSE_MS))
  }

  function now(): number | undefined {
    if (steps.length === 0) return undefined
    return performance.now() + Math.max(...steps.map(({ closedAt, seenAt }) => closedAt * 1000 - seenAt))
  }

  return { note, dueIn, secondsPerLedger, now }
}
