import { and, eq, isNull } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import type { DirectoryContext } from '../context.ts'
import { isId } from '../ids.ts'
import { contractorNotFound } from './contractors.ts'
import { inviteContractor } from './invites.ts'

/**
 * Mails a contractor a new invite for an operator, who never sees the link. Resolves to false, without issuing one, if no
 * mail can be sent: SMTP is not configured, or the contractor has no email.
 * @throws Refusal like `inviteContractor`
 */
export async function resendInvite(
  context: DirectoryContext,
  { id, actor, note }: { id: string; actor: Actor; note: string },
): Promise<boolean> {
  const { db, settings } = context
  if (!isId(id)) throw contractorNotFound()
  const [record] = await db
    .select({ organisation: contractors.organisation, email: contractors.email })
    .from(contractors)
    .where(and(eq(contractors.id, id), isNull(contractors.deletedAt)))
  if (!record) throw contractorNotFound()
  if (settings.mail === undefined || record.email === null) return false
  await inviteContractor({ ...context, employer: { organisation: record.organisation, actor } }, id, note)
  return true
}
