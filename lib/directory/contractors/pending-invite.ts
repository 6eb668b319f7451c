import { and, desc, eq, gt, inArray, isNull, ne, or, type Placeholder } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'

/** The condition for contractors whose invite can be accepted. */
export const isOpenInvite = (now: Date | Placeholder) =>
  and(
    ne(contractors.status, 'inactive'),
    isNull(contractors.deletedAt),
    isNull(contractors.linkedKind),
    gt(contractors.inviteExpiresAt, now),
  )

/** The verified identities of a person, and the organisation that it has or may found. */
interface Invitee {
  identities: readonly { kind: 'ledger' | 'idp'; sub: string; email: string | null }[]
  organisationId: string
}

interface PendingInvite {
  contractor: string
  version: number
  company: string
}

/** Finds the newest open invite for an account or a verified email of the person, of another organisation than its own. */
export async function findPendingInvite(
  { db, now }: { db: Database; now: Date },
  { identities: own, organisationId }: Invitee,
): Promise<PendingInvite | undefined> {
  const accounts = own.flatMap(({ kind, sub }) => (kind === 'ledger' ? [sub] : []))
  const emails = own.flatMap(({ email }) => email ?? [])
  const isInvitee = or(inArray(contractors.address, accounts), inArray(contractors.emailFolded, emails))
  const [invite] = await db
    .select({ contractor: contractors.id, version: contractors.inviteVersion, company: organisations.name })
    .from(contractors)
    .innerJoin(organisations, eq(organisations.id, contractors.organisation))
    .where(and(isInvitee, isOpenInvite(now), ne(contractors.organisation, organisationId)))
    .orderBy(desc(contractors.createdAt), desc(contractors.sequence))
    .limit(1)
  return invite
}
