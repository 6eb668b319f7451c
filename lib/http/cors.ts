import { validEnvironment } from '#lib/config/environment.ts'

/**
 * The origins whose pages may read the responses of a route. `configured`: CORS_ORIGINS, or all origins if it is not set.
 * `everybody`: all origins, because a standard requires it. `ourselves`: only pages of this service.
 */
export type Readers = 'configured' | 'everybody' | 'ourselves'

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
  headers.set('Access-Control-Expose-Headers', 'Link, Retry-After, WWW-Authenticate, X-Request-Id, X-Total-Count')
  return response
}

/** The response to a CORS preflight. `allow` lists the methods of the route. */
export function preflight(allow: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      Allow: allow,
      'Access-Control-Allow-Methods': allow,
      'Access-Control-Allow-Headers': 'authorization, content-type, x-request-id',
      'Access-Control-Max-Age': '86400',
    },
  })
}
