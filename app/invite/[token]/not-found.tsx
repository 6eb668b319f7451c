import type { Metadata } from 'next'
import { InviteCard } from './invite-card.tsx'

export const metadata: Metadata = { title: 'No invite', robots: { index: false } }

/** The page of an invite's link that is not valid. */
export default function NoInvite() {
  return (
    <InviteCard title="This invite is not valid any more">
      <p className="text-base text-soft">
        It was accepted, replaced by a newer one, or has expired. Ask your employer for another.
      </p>
    </InviteCard>
  )
}
