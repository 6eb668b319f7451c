import { randomBytes } from 'node:crypto'
import { type NextRequest, NextResponse } from 'next/server'
import { environment, isConfigurationError } from '#lib/config/environment.ts'
import { contentSecurityPolicy, requireHttps } from '#lib/http/page-headers.ts'
import { takeTurn } from '#lib/http/turns.ts'

/**
 * Gives every page its policy, with a nonce of its own, which Next puts on the scripts that it writes. Writing a page takes
 * milliseconds, so pages begin one in each turn, and what costs little is served in between.
 */
export async function proxy(request: NextRequest): Promise<NextResponse> {
  await takeTurn(0)
  const policy = contentSecurityPolicy(randomBytes(16).toString('base64'))
  const headers = new Headers(request.headers)
  headers.set('Content-Security-Policy', policy)
  const response = NextResponse.next({ request: { headers } })
  response.headers.set('Content-Security-Policy', policy)
  const address = publicUrl()
  if (address !== undefined) requireHttps(response.headers, address)
  return response
}

/** Undefined where a variable is wrong or missing: the pages say which, and need no address for it. */
function publicUrl(): string | undefined {
  try {
    return environment().PUBLIC_URL
  } catch (error) {
    if (isConfigurationError(error)) return undefined
    throw error
  }
}

// A proxy over /api would cut bodies off without a word. The viewer of /docs has a policy of its own.
export const config = { matcher: '/((?!api(?:/|$)|docs(?:/|$)|_next/static|\\.well-known|icon).*)' }
