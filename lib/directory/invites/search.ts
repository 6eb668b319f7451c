import { and, desc, eq, gt, isNull, ne, type SQL } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Identity } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { foldEmail } from '../email.ts'

/** An invite that waits for its contractor. */
export interface PendingInvite {
  contractor: string
  version: number
  company: string
}

/**
 * The newest open invite of a contractor who has the verified email, or the ledger address, of `identity`. A contractor
 * may have registered, and so be ready, before accepting. Invites of the user's own organisation do not count.
 */
export async function findPendingInvite(
  db: Database,
  identity: Identity,
  ownOrganisation: string | undefined,
  now: Date,
): Promise<PendingInvite | undefined> {
  const meant = isMeant(identity)
  if (!meant) return undefined
  const [invite] = await db
    .select({ contractor: contractors.id, version: contractors.inviteVersion, company: organisations.name })
    .from(contractors)
    .innerJoin(organisations, eq(organisations.id, contractors.organisation))
    .where(
      and(
        meant,
        ne(contractors.status, 'inactive'),
        isNull(contractors.deletedAt),
        isNull(contractors.linkedKind),
        gt(contractors.inviteExpiresAt, now),
        ownOrganisation === undefined ? undefined : ne(contractors.organisation, ownOrganisation),
      ),
    )
    .orderBy(desc(contractors.createdAt), desc(contractors.sequence))
    .limit(1)
  return invite
}

function isMeant(identity: Identity): SQL | undefined {
  if (identity.kind === 'ledger') return eq(contractors.address, identity.sub)
  return identity.email === undefined ? undefined : eq(contractors.emailFolded, foldEmail(identity.email))
}
