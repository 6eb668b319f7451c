import type { Metadata } from 'next'
import { redirect } from 'next/navigation'
import { connection } from 'next/server'
import { hasStarted } from '#app/(operator)/require-operator.ts'
import { InviteCard } from '../[token]/invite-card.tsx'

export const metadata: Metadata = { title: 'Your invite', robots: { index: false } }

/** Where a browser returns from the identity provider if its sign-in is no longer pending. */
export default async function LatePage() {
  await connection()
  if (!(await hasStarted())) redirect('/')
  return (
    <InviteCard title="The sign-in took too long">
      <p className="text-base text-soft">Open your invite link again, and sign in within ten minutes.</p>
    </InviteCard>
  )
}
