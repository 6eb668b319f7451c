import { and, eq, gt, inArray, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import { idempotencyKeys, type RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { type Database, transactFor } from './connection.ts'

interface IdentityName {
  kind: 'ledger' | 'idp'
  sub: string
}

/** A request with an Idempotency-Key. */
export interface IdempotentRequest {
  /** the id of the caller's person, whose identities share their keys */
  person: string
  /** of the session */
  identity: IdentityName
  /** of the person */
  identities: readonly IdentityName[]
  /** SHA-256 of the key */
  key: string
  /** equal for requests with the same key, method, path and body */
  fingerprint: string
}

/** How long a request is remembered (seconds). */
const KEPT_SECONDS = 24 * 60 * 60

const keptSince = sql`clock_timestamp() - make_interval(secs => ${KEPT_SECONDS})`

/**
 * The outcome of an earlier request with this key and body.
 * @throws Refusal `idempotency-key-reused` for another body, `idempotency-key-in-use` if the earlier one is not finished
 */
export async function findOutcome(
  db: Database,
  { identity, identities, key, fingerprint }: IdempotentRequest,
): Promise<RecordedOutcome | undefined> {
  const { unfinishedUntil, createdAt } = idempotencyKeys
  const isRecord = or(isNull(unfinishedUntil), gt(unfinishedUntil, sql`clock_timestamp()`))
  const rows = await db
    .select({ fingerprint: idempotencyKeys.fingerprint, outcome: idempotencyKeys.outcome, unfinishedUntil })
    .from(idempotencyKeys)
    .where(and(or(...[identity, ...identities].map((name) => isKeyOf(name, key))), gt(createdAt, keptSince), isRecord))
  // Identities that used the same key before they were joined have a row each.
  const row = rows.find((each) => each.fingerprint === fingerprint)
  if (!row && rows.length > 0) throw new Refusal('idempotency-key-reused')
  if (row && row.unfinishedUntil !== null) throw inUse()
  return row?.outcome
}

const isKeyOf = ({ kind, sub }: IdentityName, key: string): SQL | undefined =>
  and(eq(idempotencyKeys.kind, kind), eq(idempotencyKeys.sub, sub), eq(idempotencyKeys.key, key))

const inUse = () => new Refusal('idempotency-key-in-use', undefined, { retryAfter: 1 })

interface Change<Result> {
  work(tx: Database): Promise<Result>
  /** names the rows from which the response can be presented again */
  refer(result: Result): RecordedOutcome
  /** how long the request may take after its commit until it is finished by `finishRequest`. Default: it is finished */
  unfinishedSeconds?(result: Result): number | undefined
}

/**
 * `transactFor` for the change that a request makes. If the request has an Idempotency-Key, its outcome is recorded in the same SQL
 * transaction, so that a crash leaves both or neither.
 * @throws Refusal `idempotency-key-in-use` if another request with this key is in progress or has just been recorded
 */
export async function transactOnce<Result>(
  { db, once }: { db: Database; once?: IdempotentRequest | undefined },
  owner: string | symbol,
  { work, refer, unfinishedSeconds }: Change<Result>,
): Promise<Result> {
  return await transactFor(db, owner, async (tx) => {
    if (once) await claimKey(tx, once)
    const result = await work(tx)
    if (once) await recordOutcome(tx, once, refer(result), unfinishedSeconds?.(result))
    return result
  })
}

/** The first key of the advisory lock. No other lock of this service uses it. */
const KEY_LOCK = 0x1d3e

/** Claims a key until the end of the SQL transaction. A request does not wait for another one with the same key. */
async function claimKey(tx: Database, once: IdempotentRequest): Promise<void> {
  const name = `${once.person} ${once.key}`
  const lock = sql`pg_try_advisory_xact_lock(${KEY_LOCK}::int, hashtext(${name}))`
  const [claim] = await tx.select({ isTaken: sql<boolean>`${lock}` }).from(sql`(values (1)) as one`)
  if (!claim?.isTaken) throw inUse()
  // The holder before has committed since this request looked: looking again finds the outcome.
  if ((await findOutcome(tx, once)) !== undefined) throw inUse()
}

async function recordOutcome(
  tx: Database,
  { identity: { kind, sub }, key, fingerprint }: IdempotentRequest,
  outcome: RecordedOutcome,
  seconds: number | undefined,
): Promise<void> {
  const unfinishedUntil = seconds === undefined ? null : sql`clock_timestamp() + make_interval(secs => ${seconds})`
  const row = { fingerprint, outcome, unfinishedUntil, createdAt: sql`clock_timestamp()` }
  const target = [idempotencyKeys.kind, idempotencyKeys.sub, idempotencyKeys.key]
  // A row that is there has expired, or belongs to a request that failed after its commit.
  await tx
    .insert(idempotencyKeys)
    .values({ kind, sub, key, ...row })
    .onConflictDoUpdate({ target, set: row })
}

/** Records that a request which was unfinished at its commit is finished. */
export async function finishRequest(db: Database, once: IdempotentRequest, outcome: RecordedOutcome): Promise<void> {
  await db.update(idempotencyKeys).set({ unfinishedUntil: null }).where(isRequest(once, outcome))
}

/** Forgets a request that failed after its commit, so that the next attempt runs. */
export async function forgetRequest(tx: Database, once: IdempotentRequest, outcome: RecordedOutcome): Promise<void> {
  await tx.delete(idempotencyKeys).where(isRequest(once, outcome))
}

/** A request that has taken too long may have been repeated: then the row is no longer its own. */
const isRequest = ({ identity, key }: IdempotentRequest, outcome: RecordedOutcome) =>
  and(isKeyOf(identity, key), sql`${idempotencyKeys.outcome} = ${JSON.stringify(outcome)}::jsonb`)

/** The maximum number of rows that a round deletes. */
const MAX_DELETED = 1_000

/** Deletes the oldest requests that are no longer remembered. Resolves to how many. */
export async function purgeIdempotencyKeys(db: Database): Promise<number> {
  const { kind, sub, key, createdAt } = idempotencyKeys
  const oldest = db
    .select({ kind, sub, key })
    .from(idempotencyKeys)
    .where(lte(createdAt, keptSince))
    .orderBy(createdAt)
    .limit(MAX_DELETED)
  const deleted = await db
    .delete(idempotencyKeys)
    .where(inArray(sql`(${kind}, ${sub}, ${key})`, oldest))
    .returning({ key })
  return deleted.length
}
