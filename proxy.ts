import { randomBytes } from 'node:crypto'
import { type NextRequest, NextResponse } from 'next/server'
import { isDevelopment, validEnvironment } from '#lib/config/environment.ts'
import { takePageTurn, takeTurn } from '#lib/http/fairness.ts'
import { contentSecurityPolicy, requireHttps } from '#lib/http/page-headers.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { Refusal, statusOf } from '#lib/refusal/refusal.ts'

/**
 * Gives every page a Content-Security-Policy with a fresh nonce, which Next puts on its scripts. Rendering a page takes
 * milliseconds, so one page starts per turn of the event loop, and cheap requests are served in between. The number of
 * pages per client is limited.
 */
export async function proxy(request: NextRequest): Promise<NextResponse> {
  const refused = await admitPage(request).catch(presentRefusal)
  if (refused) {
    // Refusals wait for a turn, too: a client that retries at once would otherwise keep the process busy.
    await takeTurn('refusal')
    return refused
  }
  const policy = contentSecurityPolicy(randomBytes(16).toString('base64'), isDevelopment())
  const headers = new Headers(request.headers)
  headers.set('Content-Security-Policy', policy)
  const response = NextResponse.next({ request: { headers } })
  response.headers.set('Content-Security-Policy', policy)
  // With an invalid configuration PUBLIC_URL is unknown, and the pages only name the variable.
  requireHttps(response.headers, validEnvironment()?.PUBLIC_URL)
  return response
}

/**
 * Refuses methods that no page has. Resolves to undefined if the page may respond.
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
// excluded. Every other path is a page.
export const config = {
  matcher:
    '/((?!api(?:/|$)|_next/static/|\\.well-known/stellar\\.toml$|icon\\.svg$|sign-in/password/?$|sign-out/?$|act/?$|invite/email/?$|invite/sign-in/?$).*)',
}
