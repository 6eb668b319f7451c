import { and, eq, gt, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'

const DAY_MS = 86_400_000

/**
 * Limits the invites that are mailed for an organisation in 24 hours. Every user with a wallet can be an employer, and the
 * mail goes out in the service's name to any address that the employer gives. An invite counts once it is to be mailed,
 * and no longer when that has failed. Requests at the same time take turns.
 * @throws Refusal `invite-limit`, with the seconds until the oldest of them counts no longer
 */
export async function requireMailLeft(tx: Database, organisation: string, limit: number, now: Date): Promise<void> {
  await tx
    .select({ id: organisations.id })
    .from(organisations)
    .where(eq(organisations.id, organisation))
    .for('no key update')
  const isDue = sql`${auditLog.action} = 'contractor.invited' and (${auditLog.detail} ->> 'mailed')::boolean`
  const hasFailed = sql`${auditLog.action} = 'contractor.mail-failed'`
  const [day] = await tx
    .select({
      mailed: sql<number>`(count(*) filter (where ${isDue}) - count(*) filter (where ${hasFailed}))::int`,
      oldest: sql`min(${auditLog.at}) filter (where ${isDue})`.mapWith(auditLog.at),
    })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.organisation, organisation),
        gt(auditLog.at, new Date(now.getTime() - DAY_MS)),
        // As it stands in the index.
        sql`${auditLog.action} in ('contractor.invited', 'contractor.mail-failed')`,
      ),
    )
  if (!day || day.mailed < limit) return
  const message = `no more than ${limit} invites are mailed for an organisation in 24 hours`
  const wait = day.oldest.getTime() + DAY_MS - now.getTime()
  throw new Refusal('invite-limit', message, { retryAfter: Math.ceil(wait / 1000) })
}
