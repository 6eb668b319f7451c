import { z } from 'zod'
import { Refusal } from '#lib/refusal/refusal.ts'

const TOKEN_RESPONSE = z.object({ access_token: z.string() })

/**
 * Requests an access token from the test issuer of the embedded ledger, which signs one for any email.
 * @throws Refusal `unavailable`
 */
export async function askTestIssuer(issuer: string, email: string): Promise<string> {
  try {
    const response = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ email }),
      signal: AbortSignal.timeout(10_000),
    })
    return TOKEN_RESPONSE.parse(await response.json()).access_token
  } catch (cause) {
    throw new Refusal('unavailable', 'the test issuer cannot be reached', { cause })
  }
}
