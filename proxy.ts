import { randomBytes } from 'node:crypto'
import { type NextRequest, NextResponse } from 'next/server'
import { validEnvironment } from '#lib/config/environment.ts'
import { contentSecurityPolicy, requireHttps } from '#lib/http/page-headers.ts'
import { Refusal, statusOf } from '#lib/http/refusal.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { takeTurn } from '#lib/http/turns.ts'

/**
 * Gives every page its policy, with a nonce of its own, which Next puts on the scripts that it writes. Writing a page takes
 * milliseconds, so pages begin one in each turn, and what costs little is served in between. One client gets only so many.
 */
export async function proxy(request: NextRequest): Promise<NextResponse> {
  const refused = await admitPage(request).catch(presentRefusal)
  if (refused) {
    // A client that asks again at once would fill each turn with refusals.
    await takeTurn('refusal')
    return refused
  }
  const policy = contentSecurityPolicy(randomBytes(16).toString('base64'))
  const headers = new Headers(request.headers)
  headers.set('Content-Security-Policy', policy)
  const response = NextResponse.next({ request: { headers } })
  response.headers.set('Content-Security-Policy', policy)
  // Where a variable is wrong or missing the pages say which, and need no address for it.
  requireHttps(response.headers, validEnvironment()?.PUBLIC_URL)
  return response
}

/**
 * Lets a client have a page, or says why not. Next reads the body of any other request before it asks: pages take none.
 * @throws Refusal `rate-limited`, `busy`
 */
async function admitPage({ method, headers }: NextRequest): Promise<NextResponse | undefined> {
  if (method !== 'GET' && method !== 'HEAD')
    return new NextResponse(null, { status: 405, headers: { Allow: 'GET, HEAD' } })
  requireRequestLeft(headers, 'page')
  await takeTurn('page')
}

function presentRefusal(thrown: unknown): NextResponse {
  if (!(thrown instanceof Refusal)) throw thrown
  const headers = { 'Retry-After': String(thrown.retryAfter ?? 1) }
  return new NextResponse(`${thrown.message}\n`, { status: statusOf(thrown.code), headers })
}

// Next cuts the bodies of what it asks about off without a word, so the interface and the targets of forms are left out.
// The viewer of /docs has a policy of its own. Each is named to its end: what is not there is a page.
export const config = {
  matcher:
    '/((?!api(?:/|$)|docs/?$|docs/[^/]+/[^/]+/?$|_next/static/|\\.well-known/stellar\\.toml$|icon\\.svg$|sign-in/password/?$|sign-out/?$|invite/email/?$|invite/sign-in/?$).*)',
}
