'use client'

import { useRouter } from 'next/navigation'
import { type FormEvent, useState } from 'react'
import { addWallet, beginProviderSignIn, type EmailSignIn, signInByEmail } from './invite-requests.ts'
import { type Attempt, EmailField, failed, NeedsComputer, PRIMARY, Progress } from './sign-in-parts.tsx'
import { signInWithFreighter } from './wallet-sign-in.ts'

export interface AddWalletProps {
  token: string
  /** the id of the record that the invite is for */
  contractor: string
  email: EmailSignIn
  /** the problem of an earlier attempt; empty if there is none */
  problem: string
  /** whether to choose another account at the identity provider */
  choosesAccount: boolean
}

/**
 * Makes a wallet's account the contractor's address: the wallet proves ownership, and the email that accepted approves
 * it.
 */
export function AddWallet({ token, contractor, email, problem, choosesAccount }: AddWalletProps) {
  const router = useRouter()
  const [state, setState] = useState<Attempt>({ name: 'open', problem, lacksWallet: false })

  const add = async (address: string) => {
    setState({ name: 'working', words: 'Waiting for the wallet …' })
    try {
      const wallet = await signInWithFreighter()
      if (email === 'provider') {
        const { session } = wallet
        window.location.assign(await beginProviderSignIn(token, { choosesAccount, wallet: { contractor, session } }))
        return
      }
      setState({ name: 'working', words: 'Adding the wallet …' })
      await addWallet(contractor, await signInByEmail(address), wallet)
      router.refresh()
    } catch (error) {
      setState(failed(error))
    }
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    void add(String(new FormData(event.currentTarget).get('email') ?? ''))
  }

  const button = (
    <button type="submit" disabled={state.name === 'working'} className={PRIMARY}>
      Add your Freighter wallet
    </button>
  )
  return (
    <form onSubmit={submit} className="mt-2">
      {email === 'form' ? <EmailField label="The email that you accepted with">{button}</EmailField> : button}
      <Progress {...state} canUseEmail={false} />
      <NeedsComputer />
      <p className="mt-1.5 text-[0.8125rem] text-soft">
        The wallet signs a challenge, which moves no funds
        {email === 'provider' && ', and then you sign in with your email once more'}.
      </p>
    </form>
  )
}
