import type { Metadata } from 'next'
import { InviteCard } from './invite-card.tsx'

export const metadata: Metadata = { title: 'No invite', robots: { index: false } }

/** The page for an invite link that is not valid. */
export default function NoInvite() {
  return (
    <InviteCard title="This invite is no longer valid">
      <p className="text-base text-soft">It was replaced, or it has expired. Ask your employer for a new one.</p>
    </InviteCard>
  )
}
