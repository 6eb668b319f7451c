import { setImmediate } from 'node:timers/promises'
import { perProcess } from '#lib/observability/per-process.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { inLine, openLine } from '#lib/turns/line.ts'

const BUSY = { code: 'busy', message: 'the service is busy: try again' } as const
const ENDLESS = { maxWaiting: Number.POSITIVE_INFINITY, waitMs: Number.POSITIVE_INFINITY }

/** Work that blocks the event loop for milliseconds. Each kind waits in a separate line. */
type Kind = 'page' | 'refusal' | 'open body' | 'small body' | 'large body' | 'rows'

/**
 * Waits for a turn of the event loop: rendering a page, parsing a body and checking signatures block it for
 * milliseconds each. One piece of work of each kind starts per turn, and cheap requests are served in between.
 */
export async function takeTurn(kind: Kind): Promise<void> {
  const turns = perProcess('turns', () => openLine({ ...ENDLESS, ...BUSY, perOwner: 1 }))
  await inLine(turns, kind, () => setImmediate())
}

/**
 * Waits for the turn of a page.
 * @throws Refusal `busy` if 256 pages are waiting
 */
export async function takePageTurn(): Promise<void> {
  const pages = perProcess('pages', () => openLine({ ...ENDLESS, ...BUSY, atOnce: 1, maxWaiting: 255 }))
  await inLine(pages, 'page', () => takeTurn('page'))
}

/**
 * Runs a user's request. A user has at most four in progress in this process; the others wait for their turn.
 * @throws Refusal `rate-limited` if 500 are waiting, or after ten seconds
 */
export async function shareSlots<Result>(user: string, request: () => Promise<Result>): Promise<Result> {
  const message = 'too many requests from this user are in progress'
  const users = perProcess('users', () => openLine({ perOwner: 4, maxWaiting: 500, code: 'rate-limited', message }))
  return await inLine(users, user, request)
}

/** The maximum size in bytes of all request bodies that wait to be parsed. */
const MAX_HELD_BYTES = 64 * 1024 * 1024
/** Beyond this size (bytes) a body is read one chunk per turn, so that a fast client cannot take every turn. */
const LARGE = 64 * 1024

interface Body {
  chunks: Uint8Array[]
  size: number
  isWhole: boolean
  refuse(): void
}

interface Bodies {
  /** in the order in which they started */
  held: Set<Body>
  bytes: number
}

/**
 * Reads a body and waits for the turn in which to parse it. When all requests together hold too many bytes, the
 * incomplete body that started first is refused, since it is the slowest. An attacker who sends half of a body and
 * stalls is refused; a body that arrives without delay is safe.
 * @param limit bytes
 * @param turn the kind of turn for a body of this size
 * @throws Refusal `busy`, `too-large`, `body-incomplete`
 */
export async function receiveBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limit: number,
  turn: (size: number) => Kind,
): Promise<Uint8Array> {
  const bodies = perProcess('bodies', (): Bodies => ({ held: new Set(), bytes: 0 }))
  const refused = Promise.withResolvers<never>()
  // It may be rejected between two chunks, when nothing awaits it. An unhandled rejection would end the process.
  refused.promise.catch(() => undefined)
  const refuse = () => refused.reject(new Refusal(BUSY.code, BUSY.message, { retryAfter: 1 }))
  const body: Body = { chunks: [], size: 0, isWhole: false, refuse }
  bodies.held.add(body)
  try {
    for (;;) {
      if (body.size > LARGE) await takeTurn('large body')
      const { value } = await Promise.race([refused.promise, readChunk(reader)])
      if (!value) break
      if (body.size + value.length > limit) throw tooLarge(limit)
      body.chunks.push(value)
      body.size += value.length
      bodies.bytes += value.length
      makeRoom(bodies)
    }
    body.isWhole = true
    if (body.size > 0) await takeTurn(turn(body.size))
    return Buffer.concat(body.chunks)
  } finally {
    forget(bodies, body)
  }
}

function makeRoom(bodies: Bodies): void {
  for (const body of bodies.held) {
    if (bodies.bytes <= MAX_HELD_BYTES) return
    if (body.isWhole) continue
    forget(bodies, body)
    body.refuse()
  }
}

/** Also frees the bytes, since a refused request may take a while to end. */
function forget(bodies: Bodies, body: Body): void {
  if (!bodies.held.delete(body)) return
  bodies.bytes -= body.size
  body.chunks.length = 0
}

function readChunk(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadableStreamReadResult<Uint8Array>> {
  return reader.read().catch((cause: unknown) => {
    // A client that hangs up during its upload is not a failure of the service.
    throw new Refusal('body-incomplete', undefined, { cause })
  })
}

/** @param limit bytes */
export function tooLarge(limit: number): Refusal {
  return new Refusal('too-large', `the body is larger than ${limit / 1024} KiB`)
}
