'use client'

import { useRouter } from 'next/navigation'
import { type FormEvent, type ReactNode, useState } from 'react'
import { acceptInvite, beginProviderSignIn, signInByEmail } from './invite-requests.ts'
import { NoWallet, signInWithFreighter } from './wallet-sign-in.ts'

interface AcceptInviteProps {
  token: string
  /** how to sign in by email: on this page, at the identity provider, in its application, or not at all */
  email: 'form' | 'provider' | 'application' | 'none'
  /** the problem of an earlier attempt; empty if there is none */
  problem: string
  /** whether to choose another account at the identity provider */
  choosesAccount: boolean
  /** the description of the invite */
  children: ReactNode
}

/** How a contractor accepts an invite. */
type Way = 'email' | 'wallet'

type State =
  | { name: 'open'; by: Way; problem: string; lacksWallet: boolean }
  | { name: 'working'; by: Way; words: string }

/** Accepts the invite with an email or wallet session. The page then shows the next steps. */
export function AcceptInvite({ token, email, problem, choosesAccount, children }: AcceptInviteProps) {
  const router = useRouter()
  const [state, setState] = useState<State>({ name: 'open', by: 'email', problem, lacksWallet: false })

  const accept = async (by: Way, words: string, signIn: () => Promise<string>) => {
    setState({ name: 'working', by, words })
    try {
      const session = await signIn()
      setState({ name: 'working', by, words: 'Accepting the invite …' })
      await acceptInvite(token, session)
      router.refresh()
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      setState({ name: 'open', by, problem, lacksWallet: error instanceof NoWallet })
    }
  }
  const goToProvider = async () => {
    setState({ name: 'working', by: 'email', words: 'Going to the sign-in …' })
    try {
      window.location.assign(await beginProviderSignIn(token, choosesAccount))
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      setState({ name: 'open', by: 'email', problem, lacksWallet: false })
    }
  }
  const submitEmail = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const address = String(new FormData(event.currentTarget).get('email'))
    void accept('email', 'Signing in …', () => signInByEmail(address))
  }

  const isWorking = state.name === 'working'
  return (
    <>
      {children}
      <div className="mt-6 space-y-6">
        {email === 'form' && (
          <form onSubmit={submitEmail}>
            <label htmlFor="email" className="mb-1.5 block font-medium">
              Accept with your email
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
              <button type="submit" disabled={isWorking} className={PRIMARY}>
                Accept by email
              </button>
            </div>
            <Progress state={state} of="email" canUseEmail />
            <p className="mt-1.5 text-[0.8125rem] text-faint">
              This is a test network: its identity provider accepts any address.
            </p>
          </form>
        )}
        {email === 'provider' && (
          <div>
            <p className="mb-1.5 font-medium">Accept with your email</p>
            <button type="button" disabled={isWorking} className={PRIMARY} onClick={goToProvider}>
              Sign in with your email
            </button>
            <Progress state={state} of="email" canUseEmail />
            <p className="mt-1.5 text-[0.8125rem] text-faint">
              You sign in with this service’s identity provider. When you return, the invite is accepted.
            </p>
          </div>
        )}
        {email === 'application' && (
          <p className="text-soft">
            With an email: sign in to the application that your employer uses. It shows this invite, and you accept it
            there.
          </p>
        )}
        <div>
          <p className="mb-1.5 font-medium">Accept with your wallet</p>
          <button
            type="button"
            disabled={isWorking}
            className={email === 'form' || email === 'provider' ? SECONDARY : PRIMARY}
            onClick={() => accept('wallet', 'Waiting for the wallet …', signInWithFreighter)}
          >
            Accept with Freighter
          </button>
          <Progress state={state} of="wallet" canUseEmail={email !== 'none'} />
          <p className="mt-1.5 text-[0.8125rem] text-faint">
            The wallet signs a challenge, which moves no funds. You are paid to its account.
          </p>
        </div>
      </div>
      <p className="mt-8 border-t border-line pt-4 text-[0.8125rem] text-faint">
        If you did not expect this, close the page: nothing happens unless you accept.
      </p>
    </>
  )
}

/** The progress or the problem, shown below the button that was clicked. */
function Progress({ state, of, canUseEmail }: { state: State; of: Way; canUseEmail: boolean }) {
  const isCurrent = state.by === of
  const problem = isCurrent && state.name === 'open' ? state.problem : ''
  return (
    <>
      <p role="status" className="mt-2 text-soft empty:hidden">
        {isCurrent && state.name === 'working' ? state.words : ''}
      </p>
      {problem !== '' && (
        <p role="alert" className="mt-2 rounded-md bg-bad-wash px-4 py-3 text-bad">
          {problem}
          {state.name === 'open' && state.lacksWallet && (
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
const PRIMARY = `${BUTTON} bg-accent text-on-accent enabled:hover:bg-accent-strong`
const SECONDARY = `${BUTTON} border border-edge bg-surface enabled:hover:border-accent enabled:hover:text-accent`
