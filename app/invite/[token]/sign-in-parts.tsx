import type { ReactNode } from 'react'
import { NoWallet } from './wallet-sign-in.ts'

/** A sign-in that may begin, with the problem of the last one, or that is in progress. */
export type Attempt = { name: 'open'; problem: string; lacksWallet: boolean } | { name: 'working'; words: string }

/** The attempt that ended with an error. */
export function failed(error: unknown): Attempt {
  const problem = error instanceof Error ? error.message : String(error)
  return { name: 'open', problem, lacksWallet: error instanceof NoWallet }
}

export function EmailField({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <label htmlFor="email" className="mb-1.5 block font-medium">
        {label}
      </label>
      <div className="flex flex-wrap gap-2">
        <input
          id="email"
          name="email"
          // An input of type email rejects non-ASCII letters before the @, and rewrites those after it.
          type="text"
          inputMode="email"
          autoCapitalize="none"
          spellCheck={false}
          required
          autoComplete="email"
          placeholder="you@example.com"
          className="min-w-0 flex-1 basis-52 rounded-md border border-edge bg-surface px-3 py-2 text-base placeholder:text-faint"
        />
        {children}
      </div>
    </>
  )
}

/** What a phone needs to know before its user taps a button for a wallet. */
export function NeedsComputer({ canUseEmail = false }: { canUseEmail?: boolean }) {
  return (
    <p className="mt-1.5 hidden text-[0.8125rem] text-soft pointer-coarse:block">
      Freighter is an extension of desktop browsers: open this link on a computer
      {canUseEmail && ', or accept with your email here and add the wallet later'}.
    </p>
  )
}

/** The progress or the problem, shown below the button that was clicked. */
export function Progress({ canUseEmail, ...attempt }: Attempt & { canUseEmail: boolean }) {
  const problem = attempt.name === 'open' ? attempt.problem : ''
  return (
    <>
      <p role="status" className="mt-2 text-soft empty:hidden">
        {attempt.name === 'working' ? attempt.words : ''}
      </p>
      {problem !== '' && (
        <p role="alert" className="mt-2 rounded-md bg-bad-wash px-4 py-3 text-bad">
          {problem}
          {attempt.name === 'open' && attempt.lacksWallet && (
            <>
              {' '}
              <a href="https://www.freighter.app" rel="noreferrer" className="underline underline-offset-4">
                Get it at freighter.app
              </a>
              , add it to this browser, create an account on the test network, and reload this page. Browsers on phones
              have no wallet extensions: open this link on a computer{canUseEmail && ', or accept with your email'}.
            </>
          )}
        </p>
      )}
    </>
  )
}

const BUTTON = 'rounded-md px-4 py-2 font-medium transition-colors disabled:bg-line disabled:text-ink'
export const PRIMARY = `${BUTTON} bg-accent text-on-accent enabled:hover:bg-accent-strong`
export const SECONDARY = `${BUTTON} border border-edge bg-surface enabled:hover:border-accent enabled:hover:text-accent`
