import { randomUUID } from 'node:crypto'
import { and, asc, desc, eq, inArray, isNotNull, isNull } from 'drizzle-orm'
import { z } from 'zod'
import { contractors } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs, type ItemStatus, JOB_STATUSES } from '#drizzle/schema/relay.ts'
import type { Identity } from '#lib/auth/session.ts'
import type { PublicRelayKey } from '#lib/config/relay-key.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { isId } from '#lib/directory/ids.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { ItemQueue } from './queue.ts'
import { sealAmount } from './sealing.ts'

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

/** The context of starting jobs: the relays' public key, and their queue. */
export interface BatchContext {
  key: PublicRelayKey
  queue: ItemQueue
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
 * Records a job and sends a message for each of its items, in one SQL transaction. Seals the amounts first: from then on
 * not even this process can read them.
 * @param context.user the caller, whose contractors the job pays
 * @throws Refusal `job-running` while the user has a running job
 */
export async function startJob(
  { db, batch, user, now }: { db: Database; batch: BatchContext; user: JobUser; now: Date },
  { amounts }: z.output<typeof batchRequest>,
): Promise<{ jobId: string; status: 'running' }> {
  const { key, queue } = batch
  const id = randomUUID()
  const { kind, sub } = user.identity
  const recipients = await findRecipients(db, user.organisation?.id, amounts.length)
  const items = await Promise.all(
    amounts.map(async (amount, position) => ({
      job: id,
      position,
      recipient: recipients[position] ?? null,
      sealedAmount: await sealAmount(key, { job: id, position }, BigInt(amount)),
      quotaAccount: quotaAccount(user.identity),
    })),
  )
  // Not inside the transaction: on PGlite, opening the queue would wait for the transaction's connection.
  await queue.open()
  await transact(db, async (tx) => {
    const job = { id, userKind: kind, userSub: sub, relayKey: queue.relayKey, createdAt: now }
    const [written] = await tx.insert(batchJobs).values(job).onConflictDoNothing().returning({ id: batchJobs.id })
    if (!written) {
      const details = { jobId: await newestJobOf(tx, user.identity) }
      throw new Refusal('job-running', undefined, { details })
    }
    await tx.insert(batchItems).values(items)
    await queue.send(tx, items)
  })
  return { jobId: id, status: 'running' }
}

/** The user's newest job, which blocked this one. It may have ended since. */
async function newestJobOf(db: Database, owner: Owner): Promise<string> {
  const [newest] = await db
    .select({ id: batchJobs.id })
    .from(batchJobs)
    .where(isJobOf(owner))
    .orderBy(desc(batchJobs.createdAt))
    .limit(1)
  if (!newest) throw new Error('a running job blocked this one, but the user has none')
  return newest.id
}

/** The condition for a user's jobs. A run is no job: it has as many items as its batch has payouts. */
const isJobOf = ({ kind, sub }: Owner) =>
  and(eq(batchJobs.userKind, kind), eq(batchJobs.userSub, sub), isNull(batchJobs.batch))

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
        .from(batchJobs)
        .where(and(eq(batchJobs.id, id), isJobOf(session)))
    : []
  if (!job) throw new Refusal('job-not-found')
  const ended = await db
    .select({ i: batchItems.position, hash: batchItems.hash, status: batchItems.status })
    .from(batchItems)
    .where(and(eq(batchItems.job, id), inArray(batchItems.status, ['paid', 'failed', 'unknown'])))
    .orderBy(asc(batchItems.position))
  return {
    jobId: job.id,
    status: job.status,
    createdAt: job.createdAt.getTime(),
    results: ended.map(({ i, hash, status }) => ({
      i,
      hash: hash ?? '',
      status: presentStatus(status),
    })),
    ...(job.error !== null && { error: job.error }),
  }
}

/** The account whose quota a user's items use. An idp sub gets a prefix, because it may look like an address. */
function quotaAccount({ kind, sub }: Owner): string {
  return kind === 'ledger' ? sub : `${kind}:${sub}`
}

function presentStatus(status: ItemStatus): PresentedJob['results'][number]['status'] {
  if (status === 'paid') return 'SUCCESS'
  return status === 'unknown' ? 'UNKNOWN' : 'FAILED'
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
