import { hash } from 'node:crypto'
import { z } from 'zod'
import { Refusal } from '#lib/refusal/refusal.ts'
import { foldEmail } from '#lib/text/plain-text.ts'

const GRANTED = z.object({ access_token: z.string() })

/**
 * An access token for an email, from the issuer of the embedded ledger, which signs one for any email.
 * @throws Refusal `unavailable`
 */
export async function askTestIssuer(issuer: string, email: string): Promise<string> {
  try {
    const answer = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      // A sub holds ASCII only, and an email any script.
      body: JSON.stringify({ sub: hash('sha256', foldEmail(email)), email }),
      signal: AbortSignal.timeout(10_000),
    })
    return GRANTED.parse(await answer.json()).access_token
  } catch (cause) {
    throw new Refusal('unavailable', 'the test issuer cannot be reached', { cause })
  }
}
