import type { Metadata } from 'next'
import { redirect } from 'next/navigation'
import { connection } from 'next/server'
import { readQuery } from '#app/(operator)/query.ts'
import { hasStarted } from '#app/(operator)/require-operator.ts'
import { service } from '#lib/server/services.ts'
import { AcceptedInvite } from '../[token]/accepted-invite.tsx'
import { InviteCard } from '../[token]/invite-card.tsx'

export const metadata: Metadata = { title: 'Your invite', robots: { index: false } }

/** The end of a sign-in at the identity provider: shows the next steps, or reports that the sign-in took too long. */
export default async function AcceptedPage({ searchParams }: PageProps<'/invite/accepted'>) {
  await connection()
  if (!(await hasStarted())) redirect('/')
  const { status } = await readQuery(searchParams)
  const { settings } = await service()
  if (status === undefined) {
    return (
      <InviteCard title="The sign-in took too long">
        <p className="text-base text-soft">Open your invite link again, and sign in within ten minutes.</p>
      </InviteCard>
    )
  }
  return (
    <InviteCard title="Your invite">
      <AcceptedInvite
        status={status}
        by="email"
        contract={settings.token}
        isLocal={settings.network.name === 'local'}
      />
    </InviteCard>
  )
}
