'use client'

import { useEffect, useRef } from 'react'
import { Command } from '#app/(operator)/copy-button.tsx'
import { CopyListener } from '#app/(operator)/copy-listener.tsx'
import { Hash } from '#app/(operator)/hash.tsx'
import { AddWallet, type AddWalletProps } from './add-wallet.tsx'

interface AcceptedInviteProps extends AddWalletProps {
  /** the status of the contractor's record now, and whether it has an account */
  status: string
  hasAccount: boolean
  contract: string | undefined
  /** the address of the employer's application, if the deployment has one */
  application: string | undefined
  isLocal: boolean
  /** the base address of this service */
  service: string
}

/** The contractor's next steps once the invite is accepted. */
export function AcceptedInvite(props: AcceptedInviteProps) {
  const { status, hasAccount, contract, application, isLocal, service, ...signIn } = props
  const addsHere = !hasAccount && (signIn.email === 'form' || signIn.email === 'provider')
  const heading = useRef<HTMLHeadingElement>(null)
  // The form that had the focus has been removed.
  useEffect(() => heading.current?.focus(), [])
  return (
    <section aria-labelledby="accepted" className="mt-6 rounded-lg bg-good-wash p-5">
      <h2 id="accepted" ref={heading} tabIndex={-1} className="text-lg font-semibold text-good outline-none">
        The invite is accepted
      </h2>
      <ol className="mt-3 list-decimal space-y-3 pl-5 marker:text-faint">
        {addsHere && (
          <li>
            <span className="font-medium">Add your wallet</span>, so that your employer can pay its account.
            <AddWallet {...signIn} />
          </li>
        )}
        {status === 'ready' ? (
          <li>Your account is registered with the confidential token: you can now be paid.</li>
        ) : (
          <li>
            <span className="font-medium">Register your account</span> with the confidential token
            {contract && (
              <>
                {' '}
                <Hash value={contract} />
              </>
            )}
            {' in '}
            <Application address={application} />
            {'. '}
            {!hasAccount && !addsHere && 'Also enter the account’s address there. '}
            Your employer then sees when you can be paid.
          </li>
        )}
        <li>
          <span className="font-medium">See what you were paid</span> in the same place: each payment is listed with its
          transaction. The amount is encrypted: only your wallet can read it.
        </li>
      </ol>
      <details className="mt-4 text-soft">
        <summary className="w-fit py-0.5">Without an application</summary>
        <p className="mt-1">
          The command line does the same with the account that you have added: install this service’s project on a
          computer (Node and npm, then <Command text="npm ci" /> in its folder). <code>S…</code> is the secret key of
          that account. It stays on your computer, and the service pays the fees.
        </p>
        <ul className="mt-2 space-y-1.5">
          {status !== 'ready' && (
            <li>
              <Command text={`npm run -s wallet -- register --secret S… --service ${service}`} /> registers it. It must
              exist on the network: friendbot creates accounts on test networks.
            </li>
          )}
          <li>
            <Command text={`npm run -s wallet -- merge --secret S… --service ${service}`} /> makes spendable what it has
            received
          </li>
          <li>
            <Command text={`npm run -s wallet -- statement --secret S…`} /> lists every payment with its amount
          </li>
        </ul>
        {!isLocal && (
          <p className="mt-2">
            Add <Command text="--network FILE_OR_URL" /> with the deployment document of the token. The account must
            exist on the network: on a test network, its friendbot creates it.
          </p>
        )}
      </details>
      <CopyListener />
    </section>
  )
}

function Application({ address }: { address: string | undefined }) {
  if (address === undefined) return 'the application that your employer uses'
  return (
    <a href={address} className="text-accent underline underline-offset-4">
      your employer’s application
    </a>
  )
}
