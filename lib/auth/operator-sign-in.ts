import { createHmac, randomInt, randomUUID } from 'node:crypto'
import { and, desc, eq, gt, inArray, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { isPassword, mintBrowser, mintOperatorSession, type OperatorSettings, readBrowser } from './operator.ts'

/** After this many wrong attempts in a row, the next one must wait. Each further one doubles the wait, up to a minute. */
const FREE_ATTEMPTS = 5
const LONGEST_WAIT_SECONDS = 60
/** Wrong attempts older than this do not count. */
const MEMORY_SECONDS = 3600
/** One attempt in this many, chosen at random, skips the wait. */
const SKIP_ONE_IN = 10

/** Seconds to wait after `wrong` wrong attempts in a row. */
export function waitAfter(wrong: number): number {
  return wrong < FREE_ATTEMPTS ? 0 : Math.min(LONGEST_WAIT_SECONDS, 2 ** (wrong - FREE_ATTEMPTS + 1))
}

/** The cookies of a successful sign-in: a session, and an id of the browser. */
interface OperatorCookies {
  session: string
  browser: string
}

/** The cookie of an earlier sign-in, and the client's address. */
interface AttemptOrigin {
  browser: string | undefined
  client: string | undefined
}

interface SignInContext {
  settings: OperatorSettings
  database(): Promise<Database>
  now: Date
}

/** The sources whose attempt is in progress. */
const inProgress = new Set<string>()

/**
 * Chooses at random whether an attempt skips the wait. Strangers behind the operator's address could otherwise lock the
 * operator out with endless wrong attempts. With one attempt in ten, the right password succeeds after a few attempts.
 */
export const drawSkip = (): boolean => randomInt(SKIP_ONE_IN) === 0

/**
 * Signs the operator in with the password. After five wrong attempts in a row, each further one must wait longer. The
 * audit log counts attempts for all processes, per browser that has signed in before and per client address. An attempt
 * is refused while another one from the same source is in progress.
 * @param attempt.name who the operator is: there is one password for all of them
 * @param attempt.skipsWait whether the attempt was chosen to skip the wait
 * @throws Refusal `too-soon` with the seconds to wait, `unauthenticated`, `unavailable`
 */
export async function signInOperator(
  { settings, database, now }: SignInContext,
  attempt: { name: string; password: string; from: AttemptOrigin; skipsWait: boolean },
): Promise<OperatorCookies> {
  const browser = await readBrowser(settings, attempt.from.browser, now)
  const source = browser ?? sourceOf(settings, attempt.from.client)
  const { name } = attempt
  const isRight = isPassword(settings, attempt.password)
  if (isRight && attempt.skipsWait)
    await transact(await database(), (tx) => recordAttempt(tx, { name, source, isRight, now }))
  else await requireAttempt(database, { name, source, owner: browser ?? STRANGERS, isRight, now })
  if (!isRight) throw new Refusal('unauthenticated', 'wrong password')
  return {
    session: await mintOperatorSession(settings, name, now),
    browser: await mintBrowser(settings, browser ?? randomUUID(), now),
  }
}

const tooSoon = (retryAfter: number) => new Refusal('too-soon', undefined, { retryAfter })

/** The audit log contains no IP addresses, so it names a client by a keyed hash of its address. */
function sourceOf({ key }: OperatorSettings, client: string | undefined): string {
  if (client === undefined) return 'a new browser'
  return `a new browser of ${createHmac('sha256', key).update(client).digest('hex').slice(0, 16)}`
}

interface Attempt {
  name: string
  source: string
  isRight: boolean
  now: Date
}

/** The first key of the advisory lock. No other lock of this service uses it. */
const SIGN_IN_LOCK = 722_013
/** The owner of unknown browsers' transactions, which run one by one. A known browser never waits for them. */
const STRANGERS = 'sign-in of strangers'

/**
 * Records an attempt in the audit log, where later ones count it.
 * @throws Refusal `too-soon` if its source must wait
 */
async function requireAttempt(
  database: () => Promise<Database>,
  { owner, ...recorded }: Attempt & { owner: string },
): Promise<void> {
  const { source, now } = recorded
  if (inProgress.has(source)) throw tooSoon(1)
  inProgress.add(source)
  try {
    await transactFor(await database(), owner, async (tx) => {
      // Concurrent attempts in several processes would all see the same count. An attempt that waited here would occupy
      // a connection that other requests need.
      const lock = sql`select pg_try_advisory_xact_lock(${SIGN_IN_LOCK}::int, hashtext(${source})) as taken`
      const { rows } = (await tx.execute(lock)) as unknown as { rows: { taken: boolean }[] }
      const wait = rows[0]?.taken ? await secondsToWait(tx, source, now) : 1
      if (wait > 0) throw tooSoon(wait)
      await recordAttempt(tx, recorded)
    })
  } finally {
    inProgress.delete(source)
  }
}

async function recordAttempt(tx: Database, { name, source, isRight, now }: Attempt): Promise<void> {
  await recordAudit(tx, now, {
    organisation: undefined,
    // A stranger may give any name.
    actor: { kind: 'operator', sub: isRight ? name : 'dashboard' },
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
        inArray(auditLog.action, ['operator.admitted', 'operator.rejected']),
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
