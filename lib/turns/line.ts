import { Refusal, type RefusalCode } from '#lib/refusal/refusal.ts'

/**
 * Work that shares a scarce resource: database connections, a user's slots, the event loop. Each owner has a separate
 * queue, and owners take turns.
 */
export interface Line {
  limits: Limits
  running: number
  owners: Map<unknown, Queue>
}

interface Limits {
  /** how much may run concurrently, in total and per owner */
  atOnce: number
  perOwner: number
  /** how much may wait per owner, and for how long */
  maxWaiting: number
  waitMs: number
  /** thrown for work that would wait beyond that limit */
  code: RefusalCode
  message: string
}

interface Queue {
  running: number
  waiting: (() => void)[]
}

/** By default, the limits of work that waits for a database connection. */
const DATABASE: Limits = {
  atOnce: Number.POSITIVE_INFINITY,
  perOwner: Number.POSITIVE_INFINITY,
  // A waiting request's output is kept in memory.
  maxWaiting: 200,
  waitMs: 10_000,
  code: 'unavailable',
  message: 'too many requests are waiting for the database: try again',
}

export function openLine(limits: Partial<Limits>): Line {
  return { limits: { ...DATABASE, ...limits }, running: 0, owners: new Map() }
}

/**
 * Runs `work` as soon as the line has a free place. Work in a line must not enter the same line again: all of the places
 * could end up waiting for each other.
 * @throws Refusal with the line's code if the owner has too much work waiting, or after `waitMs`
 */
export async function inLine<Result>(line: Line, owner: unknown, work: () => Promise<Result>): Promise<Result> {
  const queue = line.owners.get(owner) ?? { running: 0, waiting: [] }
  if (queue.waiting.length >= line.limits.maxWaiting) throw full(line)
  line.owners.set(owner, queue)
  try {
    await takePlace(line, queue)
    try {
      return await work()
    } finally {
      line.running -= 1
      queue.running -= 1
      admit(line)
    }
  } finally {
    if (queue.running === 0 && queue.waiting.length === 0) line.owners.delete(owner)
  }
}

async function takePlace(line: Line, queue: Queue): Promise<void> {
  const place = Promise.withResolvers<void>()
  queue.waiting.push(place.resolve)
  admit(line)
  if (queue.waiting.at(-1) !== place.resolve) return
  if (line.limits.waitMs === Number.POSITIVE_INFINITY) return await place.promise
  const timer = setTimeout(() => {
    queue.waiting = queue.waiting.filter((waiting) => waiting !== place.resolve)
    place.reject(full(line))
  }, line.limits.waitMs)
  await place.promise.finally(() => clearTimeout(timer))
}

/** Starts as much work as there are free places, and moves each owner it serves to the end of the line. */
function admit(line: Line): void {
  for (const [owner, queue] of line.owners) {
    if (line.running >= line.limits.atOnce) return
    const begin = queue.running < line.limits.perOwner ? queue.waiting.shift() : undefined
    if (!begin) continue
    line.owners.delete(owner)
    line.owners.set(owner, queue)
    queue.running += 1
    line.running += 1
    begin()
  }
}

const full = ({ limits: { code, message } }: Line) => new Refusal(code, message, { retryAfter: 1 })
