import { and, desc, eq, gt, isNull, ne, sql } from 'drizzle-orm'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Identity } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { preparedOnce } from '#lib/db/prepared.ts'
import { foldEmail } from '#lib/text/plain-text.ts'

/** An invite that waits for its contractor. */
interface PendingInvite {
  contractor: string
  version: number
  company: string
}

/**
 * The newest open invite of a contractor who has the verified email, or the ledger address, of `identity`. The
 * contractor may be `ready` already: the address may have been registered before the invite was accepted.
 * @param given.without the user's own organisation, whose invites do not count
 */
export async function findPendingInvite(
  { db, now }: { db: Database; now: Date },
  { identity, without: own = null }: { identity: Identity; without?: string | null | undefined },
): Promise<PendingInvite | undefined> {
  const isWallet = identity.kind === 'ledger'
  const meant = isWallet ? identity.sub : emailOf(identity)
  if (meant === undefined) return undefined
  const [invite] = await (isWallet ? byAddress : byEmail)(db).execute({ meant, own, now })
  return invite
}

/** The verified email of a user of an identity provider, folded. */
export function emailOf(identity: Identity): string | undefined {
  return identity.kind === 'idp' && identity.email !== undefined ? foldEmail(identity.email) : undefined
}

const byAddress = preparedOnce((db) => invitesBy(db, contractors.address).prepare('invite_by_address'))
const byEmail = preparedOnce((db) => invitesBy(db, contractors.emailFolded).prepare('invite_by_email'))

function invitesBy(db: Database, column: typeof contractors.address | typeof contractors.emailFolded) {
  return db
    .select({ contractor: contractors.id, version: contractors.inviteVersion, company: organisations.name })
    .from(contractors)
    .innerJoin(organisations, eq(organisations.id, contractors.organisation))
    .where(
      and(
        eq(column, sql.placeholder('meant')),
        ne(contractors.status, 'inactive'),
        isNull(contractors.deletedAt),
        isNull(contractors.linkedKind),
        gt(contractors.inviteExpiresAt, sql.placeholder('now')),
        sql`${contractors.organisation} is distinct from ${sql.placeholder('own')}::uuid`,
      ),
    )
    .orderBy(desc(contractors.createdAt), desc(contractors.sequence))
    .limit(1)
}
