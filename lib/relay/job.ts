import { randomUUID } from 'node:crypto'
import { and, asc, desc, eq, inArray, isNotNull, isNull } from 'drizzle-orm'
import { z } from 'zod'
import { contractors } from '#drizzle/schema/directory.ts'
import { JOB_STATUSES, type LineOutcome, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Identity } from '#lib/auth/session.ts'
import type { PublicRelayKey } from '#lib/config/relay-key.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { isId } from '#lib/directory/ids.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { sealAmount } from './sealing.ts'
import { wakeRelays } from './wake-up.ts'

const AMOUNTS = z.array(z.int().positive()).min(1).max(10)
const RULE = 'must be 1–10 positive integers'

/** Base units of the default batch. */
const DEFAULT_AMOUNTS = [1_0000000, 2_0000000, 3_0000000]

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
      .default(DEFAULT_AMOUNTS),
  },
  `amounts ${RULE}`,
)

/** The relays' public key, and its thumbprint (RFC 7638): only relays with that key lease the lines of a job. */
export interface BatchContext {
  key: PublicRelayKey
  relayKey: string
}

type Owner = Pick<Identity, 'kind' | 'sub'>

interface JobUser {
  identity: Owner
  organisation: { id: string } | undefined
}

/** @throws Refusal `batch-disabled` */
export function requireBatch(batch: BatchContext | undefined): BatchContext {
  if (!batch) throw new Refusal('batch-disabled')
  return batch
}

/**
 * Records a job and its lines, and wakes the relays, in one SQL transaction. Seals the amounts first: from then on
 * not even this process can read them.
 * @param context.user the caller, whose contractors the job pays
 * @throws Refusal `job-running` while the user has a running job
 */
export async function startJob(
  { db, batch, user, now }: { db: Database; batch: BatchContext; user: JobUser; now: Date },
  { amounts }: z.output<typeof batchRequest>,
): Promise<{ jobId: string; status: 'running' }> {
  const { key, relayKey } = batch
  const id = randomUUID()
  const { kind, sub } = user.identity
  const recipients = await findRecipients(db, user.organisation?.id, amounts.length)
  const lines = await Promise.all(
    amounts.map(async (amount, position) => ({
      job: id,
      position,
      recipient: recipients[position] ?? null,
      sealedAmount: await sealAmount(key, { job: id, position }, BigInt(amount)),
      quotaAccount: quotaAccount(user.identity),
    })),
  )
  await transact(db, async (tx) => {
    const job = { id, userKind: kind, userSub: sub, relayKey, createdAt: now }
    const [written] = await tx.insert(relayJobs).values(job).onConflictDoNothing().returning({ id: relayJobs.id })
    if (!written) {
      const details = { jobId: await newestJobOf(tx, user.identity) }
      throw new Refusal('job-running', undefined, { details })
    }
    await tx.insert(relayLines).values(lines)
    await wakeRelays(tx)
  })
  return { jobId: id, status: 'running' }
}

/** The user's newest job, which blocked this one. It may have ended since. */
async function newestJobOf(db: Database, owner: Owner): Promise<string> {
  const [newest] = await db
    .select({ id: relayJobs.id })
    .from(relayJobs)
    .where(isJobOf(owner))
    .orderBy(desc(relayJobs.createdAt))
    .limit(1)
  if (!newest) throw new Error('a running job blocked this one, but the user has none')
  return newest.id
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

/**
 * A user's job with its results so far.
 * @throws Refusal `job-not-found`, including for another user's job and for a run
 */
export async function readJob(
  { db: database, session }: { db: Database; session: Owner },
  id: string,
): Promise<PresentedJob> {
  const db = readOnly(database)
  const [job] = isId(id)
    ? await db
        .select()
        .from(relayJobs)
        .where(and(eq(relayJobs.id, id), isJobOf(session)))
    : []
  if (!job) throw new Refusal('job-not-found')
  const ended = await db
    .select({ i: relayLines.position, hash: relayLines.hash, outcome: relayLines.outcome })
    .from(relayLines)
    .where(and(eq(relayLines.job, id), inArray(relayLines.outcome, ['paid', 'failed', 'unknown'])))
    .orderBy(asc(relayLines.position))
  return {
    jobId: job.id,
    status: job.status,
    createdAt: job.createdAt.getTime(),
    results: ended.map(({ i, hash, outcome }) => ({ i, hash: hash ?? '', status: presentOutcome(outcome) })),
    ...(job.error !== null && { error: job.error }),
  }
}

/** The account whose quota a user's lines use. An idp sub gets a prefix, because it may look like an address. */
function quotaAccount({ kind, sub }: Owner): string {
  return kind === 'ledger' ? sub : `${kind}:${sub}`
}

function presentOutcome(outcome: LineOutcome | null): PresentedJob['results'][number]['status'] {
  if (outcome === 'paid') return 'SUCCESS'
  return outcome === 'unknown' ? 'UNKNOWN' : 'FAILED'
}

/**
 * The recipients of a batch of `count` transfers: the organisation's `ready` contractors, oldest first, repeating if
 * there are fewer. Empty if none is ready: each channel then pays another channel.
 */
async function findRecipients(db: Database, organisation: string | undefined, count: number): Promise<string[]> {
  if (organisation === undefined) return []
  const ready = await db
    .select({ address: contractors.address })
    .from(contractors)
    .where(
      and(
        eq(contractors.organisation, organisation),
        eq(contractors.status, 'ready'),
        isNotNull(contractors.address),
        isNull(contractors.deletedAt),
      ),
    )
    .orderBy(asc(contractors.createdAt), asc(contractors.sequence))
    .limit(count)
  const addresses = ready.flatMap(({ address }) => (address === null ? [] : [address]))
  if (addresses.length === 0) return []
  return Array.from({ length: count }, (_, position) => addresses[position % addresses.length] ?? '')
}
