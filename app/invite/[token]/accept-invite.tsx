'use client'

import { useRouter } from 'next/navigation'
import { type FormEvent, type ReactNode, useState } from 'react'
import { acceptInvite, beginProviderSignIn, type EmailSignIn, signInByEmail } from './invite-requests.ts'
import { type Attempt, EmailField, failed, NeedsComputer, PRIMARY, Progress, SECONDARY } from './sign-in-parts.tsx'
import { signInWithFreighter } from './wallet-sign-in.ts'

interface AcceptInviteProps {
  token: string
  email: EmailSignIn
  /** the problem of an earlier attempt; empty if there is none */
  problem: string
  /** whether to choose another account at the identity provider */
  choosesAccount: boolean
  /** with what the invite can be accepted, and whether only with the account that the employer has entered */
  ways: { email: boolean; wallet: boolean; namesAccount: boolean }
  /** the description of the invite */
  children: ReactNode
}

/** How a contractor accepts an invite. */
type Way = 'email' | 'wallet'

type State = Attempt & { by: Way }

/** Accepts the invite with an email or wallet session. The page then shows the next steps. */
export function AcceptInvite({ token, email: offered, problem, choosesAccount, ways, children }: AcceptInviteProps) {
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
      setState({ by, ...failed(error) })
    }
  }
  const goToProvider = async () => {
    setState({ name: 'working', by: 'email', words: 'Going to the sign-in …' })
    try {
      window.location.assign(await beginProviderSignIn(token, { choosesAccount }))
    } catch (error) {
      setState({ by: 'email', ...failed(error) })
    }
  }
  const submitEmail = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const address = String(new FormData(event.currentTarget).get('email'))
    void accept('email', 'Signing in …', () => signInByEmail(address))
  }

  const email = ways.email ? offered : undefined
  const isWorking = state.name === 'working'
  const progressOf = (way: Way): Attempt =>
    state.by === way ? state : { name: 'open', problem: '', lacksWallet: false }
  return (
    <>
      {children}
      <div className="mt-6 space-y-6">
        {email === 'form' && (
          <form onSubmit={submitEmail}>
            <EmailField label="Accept with your email">
              <button type="submit" disabled={isWorking} className={PRIMARY}>
                Accept by email
              </button>
            </EmailField>
            <Progress {...progressOf('email')} canUseEmail />
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
            <Progress {...progressOf('email')} canUseEmail />
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
        {ways.wallet ? (
          <div>
            <p className="mb-1.5 font-medium">Accept with your wallet</p>
            <button
              type="button"
              disabled={isWorking}
              className={email === 'form' || email === 'provider' ? SECONDARY : PRIMARY}
              onClick={() =>
                accept('wallet', 'Waiting for the wallet …', async () => (await signInWithFreighter()).session)
              }
            >
              Accept with Freighter
            </button>
            <Progress {...progressOf('wallet')} canUseEmail={email !== undefined && email !== 'none'} />
            <NeedsComputer canUseEmail={email !== undefined && email !== 'none'} />
            <p className="mt-1.5 text-[0.8125rem] text-faint">
              The wallet signs a challenge, which moves no funds.{' '}
              {ways.namesAccount
                ? 'Use the account that you gave your employer: you are paid to it.'
                : 'You are paid to its account.'}
            </p>
          </div>
        ) : (
          <p className="text-soft">
            {email === 'none' &&
              'This service has no sign-in by email: ask your employer for an invite to your wallet. '}
            {email !== 'none' && 'Afterwards you add the wallet that you are paid to.'}
          </p>
        )}
      </div>
      <p className="mt-8 border-t border-line pt-4 text-[0.8125rem] text-faint">
        If you did not expect this, close the page: nothing happens unless you accept.
      </p>
    </>
  )
}
