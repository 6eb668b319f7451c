/** Signs in with an email at the embedded test issuer; resolves to the session. */
export async function signInByEmail(email: string): Promise<string> {
  return textOf(await ask('/invite/email', { email }), 'session')
}

/**
 * Begins a sign-in at the identity provider that ends with the invite accepted. Returns the provider's address for the
 * browser.
 */
export async function beginProviderSignIn(token: string, choosesAccount: boolean): Promise<string> {
  return textOf(await ask('/invite/sign-in', { token, choosesAccount }), 'location')
}

/** A challenge for the account to sign, and the passphrase of its network. */
export async function requestChallenge(account: string): Promise<{ transaction: string; passphrase: string }> {
  const answer = await ask(`/api/auth/sep10/challenge?account=${encodeURIComponent(account)}`)
  return { transaction: textOf(answer, 'transaction'), passphrase: textOf(answer, 'network_passphrase') }
}

/** Exchanges a signed challenge for a session. */
export async function verifyChallenge(transaction: string): Promise<string> {
  return textOf(await ask('/api/auth/sep10/verify', { transaction }), 'session')
}

export async function acceptInvite(token: string, session: string): Promise<void> {
  await ask(`/api/invites/${token}/accept`, {}, session)
}

/** @throws Error with the service's message, or with the reason why the request failed */
async function ask(path: string, body?: object, session?: string): Promise<unknown> {
  const answer = await fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(session !== undefined && { Authorization: `Bearer ${session}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Error('The service does not respond. Try again in a moment.')
  })
  const content: unknown = await answer.json().catch(() => undefined)
  if (!answer.ok) throw new Error(`It did not work: ${textOf(content, 'error')}.`)
  return content
}

function textOf(answer: unknown, name: string): string {
  const value = typeof answer === 'object' && answer !== null ? Reflect.get(answer, name) : undefined
  if (typeof value !== 'string') throw new Error('The service sent an invalid response.')
  return value
}
