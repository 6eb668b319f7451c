'use client'

import { type FormEvent, useState } from 'react'
import { BUTTON } from '#app/(operator)/action-form.tsx'
import { signInByEmail } from '#app/invite/[token]/invite-requests.ts'
import { useInteractive } from './interactive.ts'
import { claimsOf, keepSession, useSession } from './session-store.ts'
import { signInWithNewWallet } from './test-wallet.ts'

/** The session that this tab's requests carry: whose it is, and how to get one. */
export function SessionBar({ hasTestIssuer }: { hasTestIssuer: boolean }) {
  const isInteractive = useInteractive()
  const session = useSession()
  const [message, setMessage] = useState('')
  if (!isInteractive) return null

  const signIn = async (begin: () => Promise<string>) => {
    setMessage('Signing in …')
    try {
      keepSession(await begin())
      setMessage('')
    } catch (error) {
      setMessage(`It did not work: ${error instanceof Error ? error.message : error}`)
    }
  }
  const signInWithEmail = () => signInByEmail(`tester-${crypto.randomUUID().slice(0, 8)}@example.com`)
  const paste = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    keepSession(String(new FormData(event.currentTarget).get('token') ?? '').trim())
  }
  const claims = claimsOf(session)
  return (
    <section
      aria-label="Session"
      className="mb-6 rounded-lg border border-line bg-surface px-4 py-3 shadow-card print:hidden"
    >
      <p role="status" className="[overflow-wrap:anywhere]">
        {session === ''
          ? message || 'No session: requests that need one are refused.'
          : claims
            ? `Signed in as ${claims.sub} (${claims.kind}), until ${claims.expiresAt.toISOString().slice(11, 16)} UTC, in this tab only.`
            : 'Requests carry the token that you entered, in this tab only.'}
      </p>
      <div className="mt-2 flex flex-wrap items-start gap-2">
        {session === '' ? (
          <>
            {hasTestIssuer && (
              <>
                <button type="button" className={BUTTON} onClick={() => signIn(signInWithNewWallet)}>
                  Sign in with a new wallet
                </button>
                <button type="button" className={BUTTON} onClick={() => signIn(signInWithEmail)}>
                  Sign in with an email
                </button>
              </>
            )}
            <details className="open:basis-full">
              <summary className="w-fit leading-6 text-soft">Enter a token</summary>
              <form onSubmit={paste} className="mt-1 flex flex-wrap gap-2">
                <input
                  name="token"
                  type="password"
                  required
                  aria-label="Bearer token"
                  autoComplete="off"
                  className="h-8 min-w-0 flex-1 basis-52 rounded-md border border-edge bg-surface px-2"
                />
                <button type="submit" className={BUTTON}>
                  Use it
                </button>
              </form>
            </details>
          </>
        ) : (
          <button type="button" className={BUTTON} onClick={() => keepSession('')}>
            Forget the session
          </button>
        )}
      </div>
    </section>
  )
}
