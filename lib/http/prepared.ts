import { createHash } from 'node:crypto'
import { takeTurn } from './fairness.ts'

/** An answer of at most this many bytes is sent at once, without a turn of its own. */
const SMALL = 16 * 1024

/** An answer that is made once and sent many times. */
export interface Prepared {
  bytes: Uint8Array<ArrayBuffer>
  etag: string
  type: string
}

/** Prepares bytes or a text to be sent as `type`. */
export function prepare(content: string | Uint8Array, type: string): Prepared {
  const bytes = new Uint8Array(Buffer.from(content))
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  return { bytes, etag, type }
}

/**
 * The answer for `request`: 304 if it has the bytes already (RFC 9110 §13.1.2). Large answers go out one per turn of
 * the event loop.
 */
export async function answerPrepared(
  request: Request,
  { bytes, etag, type }: Prepared,
  given: HeadersInit = {},
): Promise<Response> {
  const headers = new Headers(given)
  headers.set('ETag', etag)
  const known = request.headers.get('if-none-match')?.split(',') ?? []
  if (known.some((tag) => tag.trim().replace(/^W\//, '') === etag)) return new Response(null, { status: 304, headers })
  if (bytes.length > SMALL) await takeTurn('large body')
  headers.set('Content-Type', type)
  return new Response(bytes, { headers })
}
