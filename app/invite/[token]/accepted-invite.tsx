'use client'

import { useEffect, useRef } from 'react'
import { Command } from '#app/(operator)/copy-button.tsx'
import { CopyListener } from '#app/(operator)/copy-listener.tsx'
import { Hash } from '#app/(operator)/hash.tsx'

/** How a contractor accepts an invite. */
export type Way = 'email' | 'wallet'

interface AcceptedInviteProps {
  /** the status of the contractor's record now */
  status: string
  by: Way
  contract: string | undefined
  isLocal: boolean
}

/** The contractor's next steps after accepting an invite. */
export function AcceptedInvite({ status, by, contract, isLocal }: AcceptedInviteProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  // The form that had the focus has been removed.
  useEffect(() => heading.current?.focus(), [])
  return (
    <section aria-labelledby="accepted" className="mt-6 rounded-lg bg-good-wash p-5">
      <h2 id="accepted" ref={heading} tabIndex={-1} className="text-lg font-semibold text-good outline-none">
        You have accepted
      </h2>
      <ol className="mt-3 list-decimal space-y-3 pl-5 marker:text-faint">
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
            {' in the application that your employer uses. '}
            {by === 'email' && 'Also enter the account’s address there. '}
            Your employer then sees when you can be paid.
          </li>
        )}
        <li>
          <span className="font-medium">See what you were paid</span> in that application: each payment is listed with
          its transaction. The amount is encrypted: only your wallet can read it.
        </li>
      </ol>
      <details className="mt-4 text-soft">
        <summary className="w-fit py-0.5">Without an application</summary>
        <p className="mt-1">
          <Command text="GET /api/payouts" /> lists your payments.
          {isLocal && (
            <>
              {' '}
              On this test network <Command text="npm run -s wallet -- new" /> creates a registered account, and{' '}
              <Command text="npm run -s wallet -- balance" /> shows its balance.
            </>
          )}
        </p>
      </details>
      <CopyListener />
    </section>
  )
}
