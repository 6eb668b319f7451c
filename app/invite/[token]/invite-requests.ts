/** How to sign in by email: on this page, at the identity provider, in the employer's application, or not at all. */
export type EmailSignIn = 'form' | 'provider' | 'application' | 'none'

/** A wallet's session, and its account. */
export interface WalletSession {
  session: string
  account: string
}

/** Signs in with an email at the embedded test issuer; resolves to the session. */
export async function signInByEmail(email: string): Promise<string> {
  return textOf(await ask('/invite/email', { email }), 'session')
}

/**
 * Begins a sign-in at the identity provider that ends with the invite accepted, or with the wallet added to its
 * contractor. Returns the provider's address for the browser.
 */
export async function beginProviderSignIn(
  token: string,
  then: { choosesAccount: boolean; wallet?: { contractor: string; session: string } },
): Promise<string> {
  return textOf(await ask('/invite/sign-in', { token, ...then }), 'location')
}

/** Makes the wallet's account the contractor's address. Both sessions are of the same person. */
export async function addWallet(contractor: string, session: string, wallet: WalletSession): Promise<void> {
  // Otherwise the wallet would join an organisation that is not the contractor's.
  await ask(`/api/contractors/${contractor}`, undefined, session).catch((error: unknown) => {
    const isOfOther = error instanceof RefusedRequest && (error.status === 403 || error.status === 404)
    throw isOfOther ? new Error('It did not work: the invite was accepted with another email.') : error
  })
  await ask('/api/me/identities', { session: wallet.session }, session)
  await ask(`/api/contractors/${contractor}`, { address: wallet.account }, session, 'PATCH')
}

/** A challenge for the account to sign, and the passphrase of its network. */
export async function requestChallenge(account: string): Promise<{ transaction: string; passphrase: string }> {
  const answer = await ask(`/api/auth/sep10/challenge?account=${encodeURIComponent(account)}`)
  return { transaction: textOf(answer, 'transaction'), passphrase: textOf(answer, 'network_passphrase') }
}

/** Exchanges a signed challenge for a session. */
export async function verifyChallenge(transaction: string): Promise<WalletSession> {
  const answer = await ask('/api/auth/sep10/verify', { transaction })
  return { session: textOf(answer, 'session'), account: textOf(answer, 'sub') }
}

export async function acceptInvite(token: string, session: string): Promise<void> {
  await ask(`/api/invites/${token}/accept`, {}, session)
}

class RefusedRequest extends Error {
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** @throws Error with the service's message, or with the reason why the request failed */
async function ask(
  path: string,
  body?: object,
  session?: string,
  method = body === undefined ? 'GET' : 'POST',
): Promise<unknown> {
  const answer = await fetch(path, {
    method,
    headers: {
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(session !== undefined && { Authorization: `Bearer ${session}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Error('The service does not respond. Try again in a moment.')
  })
  const content: unknown = await answer.json().catch(() => undefined)
  if (!answer.ok) throw new RefusedRequest(`It did not work: ${textOf(content, 'error')}.`, answer.status)
  return content
}

function textOf(answer: unknown, name: string): string {
  const value = typeof answer === 'object' && answer !== null ? Reflect.get(answer, name) : undefined
  if (typeof value !== 'string') throw new Error('The service sent an invalid response.')
  return value
}
