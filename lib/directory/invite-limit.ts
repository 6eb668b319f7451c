import { and, desc, eq, sql } from 'drizzle-orm'
import { auditLog, organisations } from '#drizzle/directory-schema.ts'
import type { Database } from '#lib/db.ts'
import { Refusal } from '#lib/refusal.ts'

const DAY_MS = 86_400_000

/**
 * Holds an organisation to the invites that are mailed for it in 24 hours: whoever has a wallet is an employer, and the
 * mail goes out in the service's name to whomever they write down. Those who invite at the same time take turns.
 * @throws Refusal too-soon, with the seconds until the oldest of them counts no longer
 */
export async function requireMailLeft(tx: Database, organisation: string, limit: number, now: Date): Promise<void> {
  await tx
    .select({ id: organisations.id })
    .from(organisations)
    .where(eq(organisations.id, organisation))
    .for('no key update')
  const [oldest] = await tx
    .select({ at: auditLog.at })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.organisation, organisation),
        // As it stands in the index.
        sql`${auditLog.action} = 'contractor.invited'`,
        sql`(${auditLog.detail} ->> 'mailed')::boolean`,
      ),
    )
    .orderBy(desc(auditLog.sequence))
    .offset(limit - 1)
    .limit(1)
  const wait = oldest ? oldest.at.getTime() + DAY_MS - now.getTime() : 0
  if (wait > 0) {
    const message = `no more than ${limit} invites are mailed for an organisation in 24 hours`
    throw new Refusal('too-soon', message, { retryAfter: Math.ceil(wait / 1000) })
  }
}
