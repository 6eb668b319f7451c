import type { Metadata } from 'next'
import { connection } from 'next/server'
import { findOpenInvite } from '#lib/directory/invites/invites.ts'
import { service } from '#lib/server/services.ts'
import { InviteNotice, VoidInviteNotice } from './invite-notice.tsx'

// Whoever has the address can accept: it goes neither to search engines nor, as a referrer, to other sites.
export const metadata: Metadata = { title: 'An invite', robots: { index: false }, referrer: 'no-referrer' }

/** What an invite's link opens where no application of its own is configured. */
export default async function InvitePage({ params }: PageProps<'/invite/[token]'>) {
  await connection()
  const { settings, database, now } = await service()
  const { token } = await params
  const invite = await findOpenInvite(await database(), settings.invites, token, now())
  if (!invite) return <VoidInviteNotice />
  return <InviteNotice invite={invite} acceptUrl={`${settings.publicUrl}/api/invites/${token}/accept`} />
}
