import { distributionSamples, type Family, type Sample } from './prometheus.ts'

type Labels = Sample['labels']

/** What a process counts by itself. What must survive it, or be the same for all instances, is read from the database. */
const COUNTERS = {
  'http-requests': {
    name: 'payroll_http_requests_total',
    help: 'Requests to the interface, by method, route and status, of this process.',
  },
  'rpc-calls': { name: 'payroll_rpc_calls_total', help: 'Calls to the Stellar RPC, by method, of this process.' },
  'rpc-errors': {
    name: 'payroll_rpc_errors_total',
    help: 'Those of them without an answer, or with an error for one.',
  },
} as const
export type Counter = keyof typeof COUNTERS

const TIMERS = {
  'http-seconds': {
    name: 'payroll_http_request_seconds',
    help: 'How long requests took, by method and route, of this process.',
    bounds: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
} as const
export type Timer = keyof typeof TIMERS

interface Timed {
  labels: Labels
  counts: number[]
  sum: number
}

interface Measurements {
  counts: Map<Counter, Map<string, { labels: Labels; value: number }>>
  times: Map<Timer, Map<string, Timed>>
}

// A build may bundle the boot module and the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollMeasurements?: Measurements }

function measurements(): Measurements {
  shared.payrollMeasurements ??= { counts: new Map(), times: new Map() }
  return shared.payrollMeasurements
}

/** Counts one more. Labels come from closed sets: each combination is kept for as long as the process lives. */
export function count(counter: Counter, labels: Labels): void {
  const entry = entryOf(measurements().counts, counter, labels, () => ({ labels, value: 0 }))
  entry.value += 1
}

/** Notes how long something took, in seconds. */
export function time(timer: Timer, labels: Labels, seconds: number): void {
  const { bounds } = TIMERS[timer]
  const entry = entryOf(measurements().times, timer, labels, () => ({
    labels,
    counts: new Array<number>(bounds.length + 1).fill(0),
    sum: 0,
  }))
  const found = bounds.findIndex((bound) => seconds <= bound)
  const index = found < 0 ? bounds.length : found
  entry.counts[index] = (entry.counts[index] ?? 0) + 1
  entry.sum += seconds
}

function entryOf<Name, Entry>(
  families: Map<Name, Map<string, Entry>>,
  name: Name,
  labels: Labels,
  create: () => Entry,
): Entry {
  const family = families.get(name) ?? new Map<string, Entry>()
  families.set(name, family)
  const key = JSON.stringify(labels)
  const entry = family.get(key) ?? create()
  family.set(key, entry)
  return entry
}

/** All that this process has counted and timed. */
export function measured(): Family[] {
  const { counts, times } = measurements()
  const counters = (Object.keys(COUNTERS) as Counter[]).map((counter) => ({
    ...COUNTERS[counter],
    type: 'counter' as const,
    samples: [...(counts.get(counter)?.values() ?? [])],
  }))
  const timers = (Object.keys(TIMERS) as Timer[]).map((timer) => {
    const { name, help, bounds } = TIMERS[timer]
    const timed = [...(times.get(timer)?.values() ?? [])]
    const samples = timed.flatMap(({ labels, ...entry }) => distributionSamples(labels, { ...entry, bounds }))
    return { name, help, type: 'histogram' as const, samples }
  })
  return [...counters, ...timers]
}
