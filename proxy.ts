import { randomBytes } from 'node:crypto'
import { type NextRequest, NextResponse } from 'next/server'
import { validEnvironment } from '#lib/config/environment.ts'
import { takePageTurn, takeTurn } from '#lib/http/fairness.ts'
import { contentSecurityPolicy, requireHttps } from '#lib/http/page-headers.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { Refusal, statusOf } from '#lib/refusal/refusal.ts'

/**
 * Gives every page a Content-Security-Policy with a nonce of its own, which Next puts on its scripts. Rendering a page takes
 * milliseconds, so one page begins per turn of the event loop, and cheap requests are served in between. Each client may ask
 * for only so many.
 */
export async function proxy(request: NextRequest): Promise<NextResponse> {
  const refused = await admitPage(request).catch(presentRefusal)
  if (refused) {
    // Refusals wait for a turn, too: a client that asks again at once would otherwise keep the process busy with them.
    await takeTurn('refusal')
    return refused
  }
  const policy = contentSecurityPolicy(randomBytes(16).toString('base64'))
  const headers = new Headers(request.headers)
  headers.set('Content-Security-Policy', policy)
  const response = NextResponse.next({ request: { headers } })
  response.headers.set('Content-Security-Policy', policy)
  // Where a variable is wrong or missing, PUBLIC_URL is not known, and the pages only say which variable it is.
  requireHttps(response.headers, validEnvironment()?.PUBLIC_URL)
  return response
}

/**
 * Answers requests that no page takes; undefined where a page may answer. Pages take no body, so GET and HEAD suffice.
 * @throws Refusal `rate-limited`, `busy`
 */
async function admitPage({ method, headers }: NextRequest): Promise<NextResponse | undefined> {
  if (method !== 'GET' && method !== 'HEAD')
    return new NextResponse(null, { status: 405, headers: { Allow: 'GET, HEAD' } })
  requireRequestLeft(headers, 'page')
  await takePageTurn()
}

function presentRefusal(thrown: unknown): NextResponse {
  if (!(thrown instanceof Refusal)) throw thrown
  const headers = { 'Retry-After': String(thrown.retryAfter ?? 1) }
  return new NextResponse(`${thrown.message}\n`, { status: statusOf(thrown.code), headers })
}

// Next silently truncates the bodies of requests that it passes to this file, so the API and the targets of forms are
// left out. So is the viewer of /docs, which has a policy of its own. Paths are matched to their end: every other path
// is a page.
export const config = {
  matcher:
    '/((?!api(?:/|$)|docs/?$|docs/[^/]+/[^/]+/?$|_next/static/|\\.well-known/stellar\\.toml$|icon\\.svg$|sign-in/password/?$|sign-out/?$|invite/email/?$|invite/sign-in/?$).*)',
}
