import { setImmediate } from 'node:timers/promises'
import { Refusal } from './refusal.ts'

/** How many bytes of bodies may wait: they are held in memory, and the last of them waits for all the others. */
const MOST_WAITING = 32 * 1024 * 1024

interface Turns {
  last: Promise<unknown>
  /** bytes of the bodies that wait */
  waiting: number
}

// A build may bundle the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollTurns?: Turns }

/**
 * Waits for a turn of the event loop of its own. Parsing a large body, decoding the transaction in it and checking
 * signatures hold the process for milliseconds each. Between two turns every cheap request is served, also while many
 * bodies come at once.
 * @param bytes of the body that waits
 * @throws Refusal `busy`
 */
export async function takeTurn(bytes: number): Promise<void> {
  shared.payrollTurns ??= { last: Promise.resolve(), waiting: 0 }
  const turns = shared.payrollTurns
  if (turns.waiting > 0 && turns.waiting + bytes > MOST_WAITING) {
    throw new Refusal('busy', 'the service is busy: try again', { retryAfter: 1 })
  }
  turns.waiting += bytes
  const turn = turns.last.then(() => setImmediate())
  turns.last = turn
  await turn
  turns.waiting -= bytes
}
