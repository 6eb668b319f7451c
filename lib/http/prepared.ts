import { createHash } from 'node:crypto'
import { takeTurn } from './fairness.ts'

/** A response of at most this many bytes is sent without waiting for a turn. */
const SMALL_BYTES = 16 * 1024

/** A response that is built once and sent many times. */
export interface Prepared {
  bytes: Uint8Array<ArrayBuffer>
  etag: string
  type: string
}

/** Prepares content to be sent as `type`. */
export function prepare(content: string | Uint8Array, type: string): Prepared {
  const bytes = new Uint8Array(Buffer.from(content))
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  return { bytes, etag, type }
}

/**
 * The response to `request`: 304 if the client has the bytes already (RFC 9110 §13.1.2). One large response is sent per
 * turn of the event loop.
 */
export async function answerPrepared(
  request: Request,
  { bytes, etag, type }: Prepared,
  extraHeaders: HeadersInit = {},
): Promise<Response> {
  const headers = new Headers(extraHeaders)
  headers.set('ETag', etag)
  const etags = request.headers.get('if-none-match')?.split(',') ?? []
  if (etags.some((tag) => tag.trim().replace(/^W\//, '') === etag)) return new Response(null, { status: 304, headers })
  if (bytes.length > SMALL_BYTES) await takeTurn('large body')
  headers.set('Content-Type', type)
  return new Response(bytes, { headers })
}
