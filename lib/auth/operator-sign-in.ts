import { createHmac, randomInt, randomUUID } from 'node:crypto'
import { and, desc, eq, gt, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { isPassword, mintBrowser, mintOperatorSession, type OperatorSettings, readBrowser } from './operator.ts'

/** This many wrong tries in a row cause the first wait; each further one doubles it, up to a minute. */
const FREE_TRIES = 5
const LONGEST_WAIT_SECONDS = 60
/** After this many seconds a wrong try is forgotten. */
const MEMORY_SECONDS = 3600
/**
 * One try in so many, drawn by lot, is admitted without a wait if its password is right. A wrong one counts like any
 * other.
 */
const DRAWN_OF = 10

/** How long after the last of `wrong` wrong tries in a row the next one is heard, in seconds. */
export function waitAfter(wrong: number): number {
  return wrong < FREE_TRIES ? 0 : Math.min(LONGEST_WAIT_SECONDS, 2 ** (wrong - FREE_TRIES + 1))
}

/** The cookies that a successful sign-in sets: a session, and a name for the browser. */
interface OperatorCookies {
  session: string
  browser: string
}

/** The browser that a try comes from: the cookie that an earlier sign-in has set, and the client's address. */
interface TriedFrom {
  browser: string | undefined
  client: string | undefined
}

/** The context of a sign-in. */
interface SignInContext {
  settings: OperatorSettings
  database(): Promise<Database>
  now: Date
}

/** The sources whose try is under way. */
const inProgress = new Set<string>()

/**
 * Draws whether a try skips the wait. Strangers who share an address with the operator can make wrong tries without end.
 * Those look like the operator's own and would keep the operator out for ever. One try in ten skips the wait, so the right
 * password is admitted after a few tries.
 */
export const drawTry = (): boolean => randomInt(DRAWN_OF) === 0

/**
 * Admits who knows the password. After five wrong tries in a row each further one has to wait longer. Tries are counted
 * in the audit log, so for all processes together, and apart for each browser that has signed in before and for each
 * client's address. Tries do not queue: one that comes while another is checked is told to come again.
 * @param tried.isDrawn whether the lot fell on the try
 * @throws Refusal `too-soon` with the seconds to wait, `unauthenticated`, `unavailable`
 */
export async function signInOperator(
  { settings, database, now }: SignInContext,
  tried: { password: string; from: TriedFrom; isDrawn: boolean },
): Promise<OperatorCookies> {
  const known = await readBrowser(settings, tried.from.browser, now)
  const source = known ?? sourceOf(settings, tried.from.client)
  const isRight = isPassword(settings, tried.password)
  if (isRight && tried.isDrawn) await transact(await database(), (tx) => note(tx, { source, isRight, now }))
  else await judge(database, { source, owner: known ?? STRANGERS, isRight, now })
  if (!isRight) throw new Refusal('unauthenticated', 'wrong password')
  return {
    session: await mintOperatorSession(settings, now),
    browser: await mintBrowser(settings, known ?? randomUUID(), now),
  }
}

const comeAgain = (retryAfter: number) => new Refusal('too-soon', 'too many wrong passwords', { retryAfter })

/** The audit log holds no addresses of people, so it names a client by a keyed hash of its address. */
function sourceOf({ key }: OperatorSettings, client: string | undefined): string {
  if (client === undefined) return 'a new browser'
  return `a new browser of ${createHmac('sha256', key).update(client).digest('hex').slice(0, 16)}`
}

interface Try {
  source: string
  isRight: boolean
  now: Date
}

/** The first of the lock's two numbers. No other advisory lock of this service uses it. */
const SIGN_IN_LOCK = 722_013
/**
 * The owner of the SQL transactions of unknown browsers, which run one by one. A known browser is its own owner and
 * never waits for them.
 */
const STRANGERS = 'sign-in of strangers'

/**
 * Records a try in the audit log, where later ones are counted.
 * @throws Refusal `too-soon` when its source is to wait
 */
async function judge(database: () => Promise<Database>, { owner, ...given }: Try & { owner: string }): Promise<void> {
  const { source, now } = given
  if (inProgress.has(source)) throw comeAgain(1)
  inProgress.add(source)
  try {
    await transactFor(await database(), owner, async (tx) => {
      // Tries that come side by side to several processes would all find the same count. A try that waited for another
      // one here would hold a connection that other requests need.
      const lock = sql`select pg_try_advisory_xact_lock(${SIGN_IN_LOCK}::int, hashtext(${source})) as taken`
      const { rows } = (await tx.execute(lock)) as unknown as { rows: { taken: boolean }[] }
      const wait = rows[0]?.taken ? await secondsToWait(tx, source, now) : 1
      if (wait > 0) throw comeAgain(wait)
      await note(tx, given)
    })
  } finally {
    inProgress.delete(source)
  }
}

async function note(tx: Database, { source, isRight, now }: Try): Promise<void> {
  await recordAudit(tx, now, {
    organisation: undefined,
    actor: { kind: 'operator', sub: 'dashboard' },
    action: isRight ? 'operator.admitted' : 'operator.rejected',
    subject: source,
  })
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
