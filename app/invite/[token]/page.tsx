import type { Metadata } from 'next'
import { redirect } from 'next/navigation'
import { connection } from 'next/server'
import { dayOf } from '#app/(operator)/figures.tsx'
import { readQuery } from '#app/(operator)/query.ts'
import { hasStarted } from '#app/(operator)/require-operator.ts'
import { missing } from '#app/missing.ts'
import { findInvite } from '#lib/directory/contractors/invites.ts'
import { directoryContext, service } from '#lib/server/services.ts'
import { AcceptInvite } from './accept-invite.tsx'
import { AcceptedInvite } from './accepted-invite.tsx'
import { InviteCard } from './invite-card.tsx'
import NoInvite from './not-found.tsx'

// Anyone who has the URL can accept, so keep it from search engines and, as a referrer, from other sites.
export const metadata: Metadata = { title: 'An invite', robots: { index: false }, referrer: 'no-referrer' }

const OTHER_EMAIL = 'It did not work: the invite was accepted with another email. Sign in with that one.'
/** The messages for refusals after a sign-in at the identity provider, by the code of the refusal. */
const PROBLEMS: Partial<Record<string, string>> = {
  'invite-for-other':
    'It did not work: this invite is for another email or account. Sign in with the email that was invited.',
  'contractor-not-found': OTHER_EMAIL,
  'employer-required': OTHER_EMAIL,
  'organisation-in-use': 'It did not work: this wallet belongs to another organisation with records.',
  'address-taken': 'It did not work: another contractor of your employer has this account.',
  'own-invite': 'It did not work: this invite is from your own organisation.',
  'identity-token-invalid': 'It did not work: the identity provider did not sign you in.',
  unavailable: 'It did not work: the identity provider cannot be reached. Try again in a moment.',
}

/** The page that an invite's link opens, unless the deployment configures a frontend. */
export default async function InvitePage({ params, searchParams }: PageProps<'/invite/[token]'>) {
  await connection()
  if (!(await hasStarted())) redirect('/')
  const running = await service()
  const { settings } = running
  const { token } = await params
  const invite = await findInvite(await directoryContext(running), token)
  if (!invite) return missing(<NoInvite />)
  const { company, invited, ways, expiresAt, accepted } = invite
  const end = expiresAt.toISOString()
  const { provider, testIssuer, network, token: contract } = settings
  const { problem } = await readQuery(searchParams)
  const title = `${company ?? 'An employer'} invites you`
  const signIn = {
    token,
    email: testIssuer ? 'form' : provider?.clientId ? 'provider' : provider ? 'application' : 'none',
    problem: problem === undefined ? '' : (PROBLEMS[problem] ?? 'It did not work. Try again.'),
    // Otherwise the provider would sign the same wrong account in again.
    choosesAccount: ['invite-for-other', 'contractor-not-found', 'employer-required'].includes(problem ?? ''),
  } as const
  if (accepted) {
    return (
      <InviteCard title={title}>
        <AcceptedInvite
          {...accepted}
          {...signIn}
          contract={contract}
          application={settings.frontendUrl}
          isLocal={network.name === 'local'}
          service={settings.publicUrl}
        />
      </InviteCard>
    )
  }
  return (
    <InviteCard title={title}>
      <AcceptInvite {...signIn} ways={ways}>
        <p className="text-base text-soft">
          You are invited to be paid as a contractor. Your pay stays between you and your employer: the amount is
          encrypted on the ledger.
        </p>
        <p className="mt-3 text-soft">
          This invite is for <span className="font-medium [overflow-wrap:anywhere] text-ink">{invited}</span>.
        </p>
        {company === undefined && (
          <p className="mt-3 text-soft">
            The employer has not set a name. Accept only if you know who sent you this link.
          </p>
        )}
        <p className="mt-3 text-soft">
          The invite can be accepted once, until{' '}
          <time dateTime={end} className="font-medium whitespace-nowrap text-ink">
            {dayOf(expiresAt)} {expiresAt.getUTCFullYear()}, {end.slice(11, 16)} UTC
          </time>
          .
        </p>
      </AcceptInvite>
    </InviteCard>
  )
}
