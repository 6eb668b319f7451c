import type { Metadata } from 'next'
import { notFound } from 'next/navigation'
import { connection } from 'next/server'
import { findOpenInvite } from '#lib/directory/invites/invites.ts'
import { service } from '#lib/server/services.ts'
import { AcceptInvite } from './accept-invite.tsx'
import { InviteCard } from './invite-card.tsx'

// Anybody who has the address can accept: it goes neither to search engines nor, as a referrer, to other sites.
export const metadata: Metadata = { title: 'An invite', robots: { index: false }, referrer: 'no-referrer' }

/** What an invite's link opens where no application of its own is configured. */
export default async function InvitePage({ params }: PageProps<'/invite/[token]'>) {
  await connection()
  const { settings, database, now } = await service()
  const { token } = await params
  const invite = await findOpenInvite(await database(), settings.invites, token, now())
  if (!invite) notFound()
  const end = invite.expiresAt.toISOString()
  const { provider, testIssuer, network } = settings
  return (
    <InviteCard title={`${invite.company} invites you`}>
      <p className="text-base text-soft">
        You are asked to be paid as a contractor. What you are paid stays between you and your employer: the amount is
        encrypted on the ledger.
      </p>
      <p className="mt-3 text-soft">
        The invite can be accepted once, until{' '}
        <time dateTime={end} className="font-medium text-ink">
          {end.slice(0, 10)}, {end.slice(11, 16)} UTC
        </time>
        .
      </p>
      <AcceptInvite
        token={token}
        email={testIssuer ? 'form' : provider ? 'application' : 'none'}
        contract={settings.token}
        isLocal={network.name === 'local'}
      />
      <p className="mt-8 border-t border-line pt-4 text-[0.8125rem] text-faint">
        If you did not expect this, close the page: nothing happens unless you accept.
      </p>
    </InviteCard>
  )
}
