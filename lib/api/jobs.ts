import { z } from 'zod'
import { batchRequest, jobShape, readJob, requireBatch, startJob } from '#lib/relay/job.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

const startedJobShape = z.object({ jobId: z.string(), status: z.literal('running') })

export const JOB_OPERATIONS = inGroup('Relay', [
  operation({
    id: 'startJob',
    route: 'POST /batch',
    caller: 'user',
    summary: 'Have the relay pay a confidential batch',
    description: [
      'One transfer for each amount (base units), from accounts of the relay’s own, to your contractors who are `ready`,',
      'oldest first. Without `amounts` the default batch runs: three transfers. One job of a user runs at a time.',
    ].join(' '),
    body: { schema: batchRequest, example: { amounts: [10_000_000, 25_000_000] } },
    requires: ({ batch }) => requireBatch(batch),
    response: {
      description: 'The job has begun',
      schema: startedJobShape,
      example: { jobId: EXAMPLE.jobId, status: 'running' },
    },
    refusals: ['job-running', 'batch-disabled'],
    handle: (context) => startJob({ ...context, batch: context.ready }, context.body),
  }),
  operation({
    id: 'getJob',
    route: 'GET /batch/{jobId}',
    caller: 'session',
    summary: 'How far a job of the relay has come',
    parameters: { jobId: { description: 'from the answer that began it', example: EXAMPLE.jobId } },
    response: {
      description: 'The job',
      schema: jobShape,
      example: {
        jobId: EXAMPLE.jobId,
        status: 'running',
        createdAt: 1_772_442_300_000,
        results: [{ i: 0, hash: EXAMPLE.hash, status: 'SUCCESS' }],
      },
    },
    refusals: ['job-not-found'],
    handle: async ({ service, session, params }) => readJob({ db: await service.database(), session }, params.jobId),
  }),
])
