import { Refusal } from '#lib/refusal/refusal.ts'

/** The work that waits for a connection. Each owner has a queue of its own. */
export interface Line {
  /** how much may run at once: `atOnce` of all owners together, `ofOne` of one owner */
  atOnce: number
  ofOne: number
  running: number
  owners: Map<unknown, Queue>
}

interface Queue {
  running: number
  waiting: (() => void)[]
}

/** At most this many wait for one owner, since what they would write is held in memory meanwhile. */
const MOST_WAITING = 200
/** As long as a pool lets a request wait for a connection. */
const PATIENCE_MS = 10_000

export function openLine(atOnce: number, ofOne = atOnce): Line {
  return { atOnce, ofOne, running: 0, owners: new Map() }
}

/**
 * Runs `work` once there is room for it. Owners take turns, so that one who asks for much does not keep the others
 * waiting. Work that runs in a line must not enter the same line again: all of its places could wait for each other.
 * @throws Refusal `unavailable` when the owner has too much waiting already, or after ten seconds
 */
export async function inLine<Result>(line: Line, owner: unknown, work: () => Promise<Result>): Promise<Result> {
  const queue = line.owners.get(owner) ?? { running: 0, waiting: [] }
  if (queue.waiting.length >= MOST_WAITING) throw full()
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
  if (!queue.waiting.includes(place.resolve)) return
  const timer = setTimeout(() => {
    queue.waiting = queue.waiting.filter((waiting) => waiting !== place.resolve)
    place.reject(full())
  }, PATIENCE_MS)
  await place.promise.finally(() => clearTimeout(timer))
}

/** Begins what there is room for, and puts each owner behind the others that wait. */
function admit(line: Line): void {
  for (const [owner, queue] of line.owners) {
    if (line.running >= line.atOnce) return
    const begin = queue.running < line.ofOne ? queue.waiting.shift() : undefined
    if (!begin) continue
    line.owners.delete(owner)
    line.owners.set(owner, queue)
    queue.running += 1
    line.running += 1
    begin()
  }
}

function full(): Refusal {
  return new Refusal('unavailable', 'too much is waiting for the database: try again', { retryAfter: 1 })
}
