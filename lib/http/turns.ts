import { setImmediate } from 'node:timers/promises'
import { Refusal } from '#lib/refusal/refusal.ts'

const MEBIBYTE = 1024 * 1024

/**
 * How much may wait in each line. Pages are counted; bodies are measured in bytes, since they are held in memory. Three
 * lines have no limit: a file is in memory anyway, a refusal is never refused itself, and a chunk's body was admitted.
 */
const MOST_WAITING = {
  page: 256,
  file: Number.POSITIVE_INFINITY,
  refusal: Number.POSITIVE_INFINITY,
  chunk: Number.POSITIVE_INFINITY,
  'open body': 32 * MEBIBYTE,
  'small body': 32 * MEBIBYTE,
  body: 32 * MEBIBYTE,
}

type Kind = keyof typeof MOST_WAITING

interface Line {
  last: Promise<unknown>
  /** how much waits, as MOST_WAITING counts it */
  waiting: number
}

// A build may bundle the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollTurns?: Map<Kind, Line> }

/**
 * Waits for a turn of the event loop. Writing a page, parsing a large body, decoding the transaction in it and checking
 * signatures hold the process for milliseconds each. Between two turns every cheap request is served, also while many
 * bodies come at once. Each kind has a line of its own: a thousand requests for pages delay no body.
 * @param weight 1, or the bytes of the body that waits
 * @throws Refusal `busy`
 */
export async function takeTurn(kind: Kind, weight = 1): Promise<void> {
  shared.payrollTurns ??= new Map()
  const line = shared.payrollTurns.get(kind) ?? { last: Promise.resolve(), waiting: 0 }
  shared.payrollTurns.set(kind, line)
  if (line.waiting > 0 && line.waiting + weight > MOST_WAITING[kind]) {
    throw new Refusal('busy', 'the service is busy: try again', { retryAfter: 1 })
  }
  line.waiting += weight
  const turn = line.last.then(() => setImmediate())
  line.last = turn
  await turn
  line.waiting -= weight
}
