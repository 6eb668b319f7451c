import { cookies } from 'next/headers'
import { z } from 'zod'
import type { PendingSignIn } from '#lib/auth/oidc/authorization.ts'

const PENDING = z.object({
  state: z.string(),
  verifier: z.string(),
  token: z.string(),
  wallet: z.object({ contractor: z.string(), session: z.string() }).optional(),
})

/** A pending sign-in at the provider, and what to do afterwards: accept the invite, or add a wallet to the contractor. */
export type InviteSignIn = PendingSignIn & Pick<z.output<typeof PENDING>, 'token' | 'wallet'>

const MINUTES_10 = 600

/** Over https the prefix binds it to this host (RFC 6265bis §4.1.3.2). */
const nameOf = (publicUrl: string) => (publicUrl.startsWith('https:') ? '__Host-invite' : 'invite')

/** Stores the sign-in in a cookie while the browser is at the identity provider. */
export async function keepSignIn(publicUrl: string, pending: InviteSignIn): Promise<void> {
  await write(publicUrl, JSON.stringify(pending), MINUTES_10)
}

/** The stored sign-in, which can be taken once; undefined if there is none. */
export async function takeSignIn(publicUrl: string): Promise<InviteSignIn | undefined> {
  const cookie = (await cookies()).get(nameOf(publicUrl))?.value
  await write(publicUrl, '', 0)
  try {
    return PENDING.parse(JSON.parse(cookie ?? ''))
  } catch {
    return undefined
  }
}

async function write(publicUrl: string, value: string, maxAge: number): Promise<void> {
  const secure = publicUrl.startsWith('https:')
  // The provider redirects from another site, and a `strict` cookie would not be sent.
  const terms = { httpOnly: true, sameSite: 'lax', secure, path: '/', maxAge } as const
  const jar = await cookies()
  jar.set(nameOf(publicUrl), value, terms)
}
