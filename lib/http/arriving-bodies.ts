import { Refusal } from '#lib/refusal/refusal.ts'
import { takeTurn } from './turns.ts'

/** The most bytes of incomplete bodies that all requests together may hold. */
const MOST_ARRIVING = 64 * 1024 * 1024

/**
 * Beyond this size (bytes) a body is read one chunk per turn of the event loop, so that a fast client cannot take
 * every turn.
 */
const LARGE = 64 * 1024

interface Arriving {
  chunks: Uint8Array[]
  size: number
  giveUp(): void
}

interface Arrivals {
  /** in the order in which they began */
  bodies: Set<Arriving>
  bytes: number
}

// A build may bundle the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollArrivals?: Arrivals }

/**
 * Collects a body. When the incomplete bodies of all requests hold too much memory, the one that began first is refused,
 * since it is the slowest. An attacker who sends half bodies and waits loses those; a body that comes at once is safe.
 * @throws Refusal `too-large`, `body-incomplete`, `busy`
 */
export async function collectBody(reader: ReadableStreamDefaultReader<Uint8Array>, limit: number): Promise<Uint8Array> {
  shared.payrollArrivals ??= { bodies: new Set(), bytes: 0 }
  const arrivals = shared.payrollArrivals
  const given = Promise.withResolvers<never>()
  // The promise may be rejected between two chunks, when nothing awaits it; unhandled, that would end the process.
  given.promise.catch(() => undefined)
  const body: Arriving = {
    chunks: [],
    size: 0,
    giveUp: () => given.reject(new Refusal('busy', 'the service is busy: try again', { retryAfter: 1 })),
  }
  arrivals.bodies.add(body)
  try {
    for (;;) {
      if (body.size > LARGE) await takeTurn('chunk')
      const { value } = await Promise.race([given.promise, read(reader)])
      if (!value) return Buffer.concat(body.chunks)
      if (body.size + value.length > limit) {
        throw tooLarge(limit)
      }
      body.chunks.push(value)
      body.size += value.length
      arrivals.bytes += value.length
      for (const first of arrivals.bodies) {
        if (arrivals.bytes <= MOST_ARRIVING) break
        forget(arrivals, first)
        first.giveUp()
      }
    }
  } finally {
    forget(arrivals, body)
  }
}

/** Also frees the bytes, since a refused request may take a while to end. */
function forget(arrivals: Arrivals, body: Arriving): void {
  if (!arrivals.bodies.delete(body)) return
  arrivals.bytes -= body.size
  body.chunks.length = 0
}

function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadableStreamReadResult<Uint8Array>> {
  return reader.read().catch((cause: unknown) => {
    // A client that hangs up while it sends is no failure of the service.
    throw new Refusal('body-incomplete', 'the body ended early', { cause })
  })
}

/** @param limit bytes */
export function tooLarge(limit: number): Refusal {
  return new Refusal('too-large', `the body is larger than ${limit / 1024} KiB`)
}
