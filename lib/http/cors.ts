import { validEnvironment } from '#lib/config/environment.ts'

/**
 * The origins whose pages may read the responses of a route. `configured`: CORS_ORIGINS, or all origins if it is not set.
 * `everybody`: all origins, because a standard requires it. `ourselves`: only pages of this service.
 */
export type Readers = 'configured' | 'everybody' | 'ourselves'

const EXPOSED = [
  ...['Link', 'Retry-After', 'WWW-Authenticate', 'X-Request-Id', 'X-Total-Count'],
  ...['Idempotency-Replayed', 'Deprecation', 'Sunset'],
].join(', ')

/** Adds CORS headers. The API takes tokens and no cookies, so every origin may read responses unless CORS_ORIGINS is set. */
export function allowReaders(request: Request, response: Response, readers: Readers): Response {
  if (readers === 'ourselves') return response
  // With an invalid configuration, every response only reports that, so any page may read it.
  const allowed = readers === 'configured' ? validEnvironment()?.CORS_ORIGINS : undefined
  const origin = request.headers.get('origin')
  const headers = response.headers
  if (!allowed) headers.set('Access-Control-Allow-Origin', '*')
  else {
    headers.append('Vary', 'Origin')
    if (origin && allowed.includes(origin)) headers.set('Access-Control-Allow-Origin', origin)
  }
  headers.set('Access-Control-Expose-Headers', EXPOSED)
  return response
}

/** A list of header names, as a browser sends it. */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+( *, *[\w!#$%&'*+.^`|~-]+)*$/

/**
 * The response to a CORS preflight. It allows every header that the browser asks for: without cookies none is dangerous, and wallets,
 * tracing and error reporters send their own.
 * @param allow the methods of the route
 */
export function preflight(request: Request, allow: string): Response {
  const requested = request.headers.get('access-control-request-headers')
  const headers = requested !== null && HEADER_NAMES.test(requested) ? requested : 'authorization, content-type'
  return new Response(null, {
    status: 204,
    headers: {
      Allow: allow,
      'Access-Control-Allow-Methods': allow,
      'Access-Control-Allow-Headers': headers,
      'Access-Control-Max-Age': '86400',
    },
  })
}
