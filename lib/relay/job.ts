import { randomUUID } from 'node:crypto'
import { and, asc, desc, eq, inArray, isNotNull, isNull, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { contractors, identities } from '#drizzle/schema/directory.ts'
import { JOB_STATUSES, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Identity } from '#lib/auth/session.ts'
import type { PublicRelayKey } from '#lib/config/relay-key.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { isId } from '#lib/directory/ids.ts'
import { isIdentity } from '#lib/directory/organisations.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { sealAmount } from './sealing.ts'
import { wakeRelays } from './wake-up.ts'

const AMOUNTS = z.array(z.int().positive()).min(1).max(10)
const RULE = 'must be 1–10 positive integers'

/** The body of POST /batch. */
export const batchRequest = z.object(
  {
    amounts: z
      .custom<number[]>((value) => AMOUNTS.safeParse(value).success, RULE)
      .meta({
        type: 'array',
        items: { type: 'integer', exclusiveMinimum: 0 },
        minItems: 1,
        maxItems: 10,
        description: 'base units of each transfer',
      })
      .default([1_0000000, 2_0000000, 3_0000000]),
  },
  `amounts ${RULE}`,
)

/** The relays' public key, and its thumbprint (RFC 7638): only relays with that key lease the lines of a job. */
export interface BatchContext {
  key: PublicRelayKey
  relayKey: string
}

type Owner = Pick<Identity, 'kind' | 'sub'>

/** @throws Refusal `batch-disabled` */
export function requireBatch(batch: BatchContext | undefined): BatchContext {
  if (!batch) throw new Refusal('batch-disabled')
  return batch
}

interface JobContext {
  db: Database
  batch: BatchContext
  /** the caller, whose contractors the job pays */
  user: { identity: Owner; organisation: { id: string } | undefined }
  now: Date
}

/**
 * Records a job and its lines, and wakes the relays, in one SQL transaction. Seals the amounts first: from then on not even this process
 * can read them.
 * @throws Refusal `job-running` while the user has a running job
 */
export async function startJob(
  { db, batch: { key, relayKey }, user, now }: JobContext,
  { amounts }: z.output<typeof batchRequest>,
): Promise<{ jobId: string; status: 'running' }> {
  const id = randomUUID()
  const { kind, sub } = user.identity
  // An idp sub gets a prefix, because it may look like an address.
  const quotaAccount = kind === 'ledger' ? sub : `${kind}:${sub}`
  const recipients = await findRecipients(db, user.organisation?.id, amounts.length)
  const lines = await Promise.all(
    amounts.map(async (amount, position) => ({
      job: id,
      position,
      // The contractors repeat if there are fewer. Without any, each channel pays another channel.
      recipient: recipients[position % recipients.length] ?? null,
      sealedAmount: await sealAmount(key, { job: id, position }, BigInt(amount)),
      quotaAccount,
    })),
  )
  await transact(db, async (tx) => {
    const job = { id, userKind: kind, userSub: sub, relayKey, createdAt: now }
    const [written] = await tx.insert(relayJobs).values(job).onConflictDoNothing().returning({ id: relayJobs.id })
    if (!written) {
      // The user's newest job blocked this one. It may have ended since.
      const own = tx.select({ jobId: relayJobs.id }).from(relayJobs).where(isJobOf(user.identity))
      const [details] = await own.orderBy(desc(relayJobs.createdAt)).limit(1)
      throw new Refusal('job-running', undefined, { details })
    }
    await queueLines(tx, lines)
  })
  return { jobId: id, status: 'running' }
}

/** Writes the lines of a job or a run, and wakes the relays once the SQL transaction commits. */
export async function queueLines(tx: Database, lines: readonly (typeof relayLines.$inferInsert)[]): Promise<void> {
  for (const part of partsOf(lines)) await tx.insert(relayLines).values(part)
  await wakeRelays(tx)
}

/** The condition for a user's jobs. A run is no job: it has as many lines as its batch has payouts. */
const isJobOf = ({ kind, sub }: Owner) =>
  and(eq(relayJobs.userKind, kind), eq(relayJobs.userSub, sub), isNull(relayJobs.batch))

/** The response of GET /batch/{jobId}. */
export const jobShape = z.object({
  jobId: z.string(),
  status: z
    .enum(JOB_STATUSES)
    .meta({ description: '`failed` if one of its transfers did not pay, once all have ended' }),
  createdAt: z.int().meta({ description: 'epoch milliseconds' }),
  results: z
    .array(
      z.object({
        i: z.int().meta({ description: 'position in the amounts, from 0' }),
        hash: z.string().meta({ description: 'hash on the ledger; empty if it never had one' }),
        status: z.enum(['SUCCESS', 'FAILED', 'UNKNOWN']),
      }),
    )
    .meta({ description: 'one for each transfer that has ended' }),
  error: z.string().optional().meta({ description: 'why the first of those that failed did' }),
})
export type PresentedJob = z.output<typeof jobShape>

/** The condition for the jobs of another identity of the same person. */
function isJobOfPerson(db: Database, { kind, sub }: Owner) {
  const own = db.select({ id: identities.organisation }).from(identities).where(isIdentity({ kind, sub }))
  const person = db
    .select({ kind: identities.kind, sub: identities.sub })
    .from(identities)
    .where(inArray(identities.organisation, own))
  return and(sql`(${relayJobs.userKind}, ${relayJobs.userSub}) in ${person}`, isNull(relayJobs.batch))
}

/** A person's job with its results so far. @throws Refusal `job-not-found`, including for another person's job and for a run */
export async function readJob(
  { db: database, session }: { db: Database; session: Owner },
  id: string,
): Promise<PresentedJob> {
  const db = readOnly(database)
  const isThis = and(eq(relayJobs.id, id), or(isJobOf(session), isJobOfPerson(db, session)))
  const [job] = isId(id) ? await db.select().from(relayJobs).where(isThis) : []
  if (!job) throw new Refusal('job-not-found')
  const { position: i, hash, outcome } = relayLines
  const ended = await db
    .select({ i, hash, outcome })
    .from(relayLines)
    .where(and(eq(relayLines.job, id), inArray(outcome, Object.keys(RESULTS) as Result[])))
    .orderBy(asc(i))
  return {
    jobId: job.id,
    status: job.status,
    createdAt: job.createdAt.getTime(),
    results: ended.map(({ i, hash, outcome }) => ({ i, hash: hash ?? '', status: RESULTS[outcome as Result] })),
    ...(job.error !== null && { error: job.error }),
  }
}

const RESULTS = { paid: 'SUCCESS', failed: 'FAILED', unknown: 'UNKNOWN' } as const
type Result = keyof typeof RESULTS

/** The addresses of the organisation's `ready` contractors, oldest first, at most `count`. */
async function findRecipients(
  db: Database,
  organisation: string | undefined,
  count: number,
): Promise<(string | null)[]> {
  if (organisation === undefined) return []
  const { address, status, deletedAt, createdAt, sequence } = contractors
  const isReady = and(eq(status, 'ready'), isNotNull(address), isNull(deletedAt))
  const ready = await db
    .select({ address })
    .from(contractors)
    .where(and(eq(contractors.organisation, organisation), isReady))
    .orderBy(asc(createdAt), asc(sequence))
    .limit(count)
  return ready.map((contractor) => contractor.address)
}
