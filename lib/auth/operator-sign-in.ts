import { randomUUID } from 'node:crypto'
import { and, desc, eq, gt, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { isPassword, mintBrowser, mintOperatorSession, type OperatorSettings, readBrowser } from './operator.ts'

/** Wrong tries in a row that cost nothing but themselves; each further one doubles the wait, up to a minute. */
const FREE_TRIES = 5
const LONGEST_WAIT_SECONDS = 60
/** After this many seconds a wrong try is forgotten. */
const MEMORY_SECONDS = 3600

/** How long after the last of `wrong` wrong tries in a row the next one is heard, in seconds. */
export function waitAfter(wrong: number): number {
  return wrong < FREE_TRIES ? 0 : Math.min(LONGEST_WAIT_SECONDS, 2 ** (wrong - FREE_TRIES + 1))
}

/** What a successful sign-in sets: a session, and a name for the browser. */
export interface OperatorCookies {
  session: string
  browser: string
}

/**
 * Admits whoever knows the password. Five wrong tries in a row slow down, and what is tried during the wait is not even
 * looked at. Tries are counted in the audit log, so for all processes together, and apart for each browser that has been
 * let in before: strangers who guess cannot keep the operator out. Addresses do not count: a client can claim any.
 * @param browser the cookie that an earlier sign-in has set
 * @throws Refusal `too-soon` with the seconds to wait, `unauthenticated`, `unavailable`
 */
export async function signInOperator(
  db: Database,
  settings: OperatorSettings,
  { password, browser }: { password: string; browser: string | undefined },
  now: Date,
): Promise<OperatorCookies> {
  const known = await readBrowser(settings, browser, now)
  const door = known ?? 'a new browser'
  const isRight = isPassword(settings, password)
  const wait = await transact(db, async (tx) => {
    // Tries that come side by side are heard one after the other, or all of them would find the same count.
    await tx.execute(sql`select pg_advisory_xact_lock(${SIGN_IN_LOCK})`)
    const left = await secondsToWait(tx, door, now)
    if (left > 0) return left
    await recordAudit(tx, now, {
      organisation: undefined,
      actor: { kind: 'operator', sub: 'dashboard' },
      action: isRight ? 'operator.admitted' : 'operator.rejected',
      subject: { kind: 'sign-in', id: door },
    })
    return 0
  })
  if (wait > 0) throw new Refusal('too-soon', 'too many wrong passwords', { retryAfter: wait })
  if (!isRight) throw new Refusal('unauthenticated', 'wrong password')
  return {
    session: await mintOperatorSession(settings, now),
    browser: await mintBrowser(settings, known ?? randomUUID(), now),
  }
}

/** Any 64-bit number of our own. */
const SIGN_IN_LOCK = 7_220_130_419_663_202n

async function secondsToWait(tx: Database, door: string, now: Date): Promise<number> {
  const tries = await tx
    .select({ at: auditLog.at, action: auditLog.action })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.subjectKind, 'sign-in'),
        eq(auditLog.subjectId, door),
        gt(auditLog.at, new Date(now.getTime() - MEMORY_SECONDS * 1000)),
      ),
    )
    .orderBy(desc(auditLog.sequence))
    .limit(20)
  const admitted = tries.findIndex(({ action }) => action === 'operator.admitted')
  const wrong = admitted === -1 ? tries.length : admitted
  const [last] = tries
  if (!last) return 0
  return Math.max(0, Math.ceil((last.at.getTime() - now.getTime()) / 1000) + waitAfter(wrong))
}
