import { createHmac, randomInt, randomUUID } from 'node:crypto'
import { and, desc, eq, gt, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { isPassword, mintBrowser, mintOperatorSession, type OperatorSettings, readBrowser } from './operator.ts'

/** Wrong tries in a row that cost nothing but themselves; each further one doubles the wait, up to a minute. */
const FREE_TRIES = 5
const LONGEST_WAIT_SECONDS = 60
/** After this many seconds a wrong try is forgotten. */
const MEMORY_SECONDS = 3600
/** How often a try is looked at during the wait, in milliseconds, and of how many others one is. */
const HEARD_EVERY_MS = 1_000
const DRAWN_OF = 10

/** How long after the last of `wrong` wrong tries in a row the next one is heard, in seconds. */
export function waitAfter(wrong: number): number {
  return wrong < FREE_TRIES ? 0 : Math.min(LONGEST_WAIT_SECONDS, 2 ** (wrong - FREE_TRIES + 1))
}

/** What a successful sign-in sets: a session, and a name for the browser. */
export interface OperatorCookies {
  session: string
  browser: string
}

/** The browser that a try comes from: the cookie that an earlier sign-in has set, and the client's address. */
export interface TriedFrom {
  browser: string | undefined
  client: string | undefined
}

/** The sources whose try is under way, and when a try of each was last heard during a wait. */
const inProgress = new Set<string>()
const heardAt = new Map<string, number>()

/**
 * Admits who knows the password. After five wrong tries in a row each further one has to wait longer. Tries are counted
 * in the audit log, so for all processes together, and apart for each browser that has signed in before and for each
 * client's address. Tries do not queue: one that comes while another is checked is told to come again.
 *
 * During a wait the first try of each second is still checked, and of the others one in ten, drawn by lot: strangers who
 * share an address with the operator can take every second, but not every lot. Such a try counts only if it is right.
 * @param isDrawn whether the lot falls on a try
 * @throws Refusal `too-soon` with the seconds to wait, `unauthenticated`, `unavailable`
 */
export async function signInOperator(
  database: () => Promise<Database>,
  settings: OperatorSettings,
  { password, from }: { password: string; from: TriedFrom },
  now: Date,
  isDrawn: () => boolean = () => randomInt(DRAWN_OF) === 0,
): Promise<OperatorCookies> {
  const known = await readBrowser(settings, from.browser, now)
  const source = known ?? sourceOf(settings, from.client)
  if (inProgress.has(source)) throw comeAgain(1)
  inProgress.add(source)
  try {
    const isRight = isPassword(settings, password)
    const wait = await judge(await database(), { source, known, isRight, isDrawn }, now)
    if (wait > 0) throw comeAgain(wait)
    if (!isRight) throw new Refusal('unauthenticated', 'wrong password')
  } finally {
    inProgress.delete(source)
  }
  return {
    session: await mintOperatorSession(settings, now),
    browser: await mintBrowser(settings, known ?? randomUUID(), now),
  }
}

const comeAgain = (retryAfter: number) => new Refusal('too-soon', 'too many wrong passwords', { retryAfter })

/** The audit log holds no addresses of people, so a client is known there by what only this service can make of it. */
function sourceOf({ key }: OperatorSettings, client: string | undefined): string {
  if (client === undefined) return 'a new browser'
  return `a new browser of ${createHmac('sha256', key).update(client).digest('hex').slice(0, 16)}`
}

/** Counts a try, unless its source is to wait: then the seconds until the next one is heard. */
async function judge(
  db: Database,
  {
    source,
    known,
    isRight,
    isDrawn,
  }: { source: string; known: string | undefined; isRight: boolean; isDrawn: () => boolean },
  now: Date,
): Promise<number> {
  // Strangers wait for each other alone, however many there are: a browser that is known has a lock of its own.
  return await transactFor(db, known ?? 'sign-in of strangers', async (tx) => {
    // Tries that come side by side to several processes would all find the same count. A try that waited for another
    // one here would hold a connection that other requests need.
    const lock = sql`select pg_try_advisory_xact_lock(${SIGN_IN_LOCK}::int, hashtext(${source})) as taken`
    const { rows } = (await tx.execute(lock)) as unknown as { rows: { taken: boolean }[] }
    if (!rows[0]?.taken) return 1
    const left = await secondsToWait(tx, source, now)
    if (left > 0 && !((isHeard(source, now) || isDrawn()) && isRight)) return left
    await recordAudit(tx, now, {
      organisation: undefined,
      actor: { kind: 'operator', sub: 'dashboard' },
      action: isRight ? 'operator.admitted' : 'operator.rejected',
      subject: { kind: 'sign-in', id: source },
    })
    return 0
  })
}

/** Any number that no other advisory lock of two numbers has. */
const SIGN_IN_LOCK = 722_013

function isHeard(source: string, now: Date): boolean {
  const last = heardAt.get(source)
  if (last !== undefined && now.getTime() - last < HEARD_EVERY_MS && now.getTime() >= last) return false
  heardAt.delete(source)
  heardAt.set(source, now.getTime())
  const [oldest] = heardAt.size > 1_000 ? heardAt.keys() : []
  if (oldest !== undefined) heardAt.delete(oldest)
  return true
}

async function secondsToWait(tx: Database, source: string, now: Date): Promise<number> {
  const tries = await tx
    .select({ at: auditLog.at, action: auditLog.action })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.subjectKind, 'sign-in'),
        eq(auditLog.subjectId, source),
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
