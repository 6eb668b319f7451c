import { z } from 'zod'
import { JOB_STATUSES } from '#drizzle/schema/relay.ts'
import { batchRequest, type PresentedJob } from '#lib/relay/jobs.ts'
import type { Swept } from '#lib/relay/sweep.ts'
import { EXAMPLE, OTHER_PROVIDER } from './examples.ts'
import type { Operation } from './operation.ts'

const startedJobShape = z.object({ jobId: z.string(), status: z.literal('running') })

export const jobShape = z.object({
  jobId: z.string(),
  status: z.enum(JOB_STATUSES).meta({ description: '`failed` if one of its transfers did, once all were tried' }),
  createdAt: z.int().meta({ description: 'epoch milliseconds' }),
  results: z
    .array(
      z.object({
        i: z.int().meta({ description: 'position in the amounts, from 0' }),
        hash: z.string().meta({ description: 'hash on the ledger; empty if it never had one' }),
        status: z.enum(['SUCCESS', 'FAILED']),
      }),
    )
    .meta({ description: 'one for each transfer that has ended' }),
  error: z.string().optional().meta({ description: 'why the first of those that failed did' }),
}) satisfies z.ZodType<PresentedJob>

const swept = (what: string) =>
  z
    .int()
    .nullable()
    .meta({ description: `${what}; null if that part failed` })

const sweptShape = z.object({
  transfers: swept('open transfers that were looked after'),
  contractors: swept('contractors that became ready'),
  jobs: swept('jobs that were queued again'),
  challenges: z.literal('purged').nullable(),
}) satisfies z.ZodType<Swept>

const shared = { group: 'Relay', caller: 'session' } as const

export const RELAY_OPERATIONS: Operation[] = [
  {
    ...shared,
    id: 'startJob',
    method: 'post',
    path: '/batch',
    summary: 'Have the relay pay a confidential batch',
    description: [
      'One transfer for each amount (base units), from accounts of the relay’s own, to your contractors who are `ready`,',
      'oldest first. Without `amounts` the default batch runs: three transfers. One job of a user runs at a time.',
    ].join(' '),
    body: { schema: batchRequest, example: { amounts: [10_000_000, 25_000_000] } },
    answer: {
      description: 'The job has begun',
      schema: startedJobShape,
      example: { jobId: EXAMPLE.jobId, status: 'running' },
    },
    refusals: {
      403: [OTHER_PROVIDER],
      409: ['a batch job is running already'],
      501: ['batch execution is disabled'],
    },
  },
  {
    ...shared,
    id: 'getJob',
    method: 'get',
    path: '/batch/{jobId}',
    summary: 'How far a job of the relay has come',
    parameters: { jobId: { description: 'from the answer that began it', example: EXAMPLE.jobId } },
    answer: {
      description: 'The job',
      schema: jobShape,
      example: {
        jobId: EXAMPLE.jobId,
        status: 'running',
        createdAt: 1_772_442_300_000,
        results: [{ i: 0, hash: EXAMPLE.hash, status: 'SUCCESS' }],
      },
    },
    refusals: { 404: ['unknown job'] },
  },
  {
    id: 'sweep',
    method: 'get',
    path: '/cron/sweep',
    group: 'Relay',
    caller: 'cron',
    extension: true,
    selfContained: true,
    summary: 'Do what nobody waits for any more',
    description: 'For a scheduler, where no process lasts that would do it by itself.',
    answer: {
      description: 'What there was to do',
      schema: sweptShape,
      example: { transfers: 0, contractors: 2, jobs: 0, challenges: 'purged' },
    },
    refusals: { 501: ['no CRON_SECRET is configured'] },
  },
]
