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
      'The relay sends one transfer for each amount (base units) from its channel accounts to your `ready` contractors,',
      'oldest first. Without `amounts` it runs the default batch of three transfers. A user can have one running job.',
    ].join(' '),
    body: { schema: batchRequest, example: { amounts: [10_000_000, 25_000_000] } },
    requires: ({ batch }) => requireBatch(batch),
    response: {
      description: 'The job has started',
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
    summary: 'Get the progress of a batch job',
    parameters: { jobId: { description: 'from the response of POST /batch', example: EXAMPLE.jobId } },
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
