import type { ContractorLine } from '#lib/dashboard/contractors.ts'
import { ActionForm } from '../action-form.tsx'

type Invited = Pick<ContractorLine, 'id' | 'isLinked' | 'invitedUntil' | 'email' | 'deletedAt'>

/** The form that mails an invite again, for a contractor who has one and has not accepted it. */
export function ResendInvite({ contractor, back }: { contractor: Invited; back: string }) {
  const { id, isLinked, invitedUntil, email, deletedAt } = contractor
  if (isLinked || invitedUntil === null || email === null || deletedAt !== null) return null
  return (
    <ActionForm
      action="resend-invite"
      subject={id}
      back={back}
      label="Resend the invite"
      why="Why, for the audit log"
    />
  )
}
