'use client'

import { useEffect, useRef } from 'react'

interface AcceptedInviteProps {
  /** the status of the contractor's record now */
  status: string
  contract: string | undefined
  isLocal: boolean
}

/** What happens once an invite is accepted. */
export function AcceptedInvite({ status, contract, isLocal }: AcceptedInviteProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  // The form that had the focus is gone.
  useEffect(() => heading.current?.focus(), [])
  return (
    <section aria-labelledby="accepted" className="mt-6 rounded-lg bg-good-wash p-5">
      <h2 id="accepted" ref={heading} tabIndex={-1} className="text-lg font-semibold text-good outline-none">
        You have accepted
      </h2>
      <ol className="mt-3 list-decimal space-y-3 pl-5 marker:text-faint">
        {status === 'ready' ? (
          <li>Your account is registered with the confidential token: you can be paid from now on.</li>
        ) : (
          <li>
            <span className="font-medium">Register your account</span> with the confidential token
            {contract && (
              <>
                {' '}
                <code className="text-[0.8125rem] [overflow-wrap:anywhere]">{contract}</code>
              </>
            )}
            , in the application that your employer uses. Your employer sees by itself when it is done.
            {isLocal && (
              <span className="mt-1 block text-soft">
                On this test network <code>npm run -s wallet -- new</code> makes an account that is registered.
              </span>
            )}
          </li>
        )}
        <li>
          <span className="font-medium">See what you were paid.</span> Each payment is listed with its transaction by{' '}
          <code>GET /api/payouts</code>, and in your application. The amount is encrypted for you: only your own wallet
          reads it
          {isLocal && (
            <>
              , as <code>npm run -s wallet -- balance</code> does
            </>
          )}
          .
        </li>
      </ol>
    </section>
  )
}
