import { sql } from 'drizzle-orm'
import { z } from 'zod'
import { batches } from '#drizzle/schema/directory.ts'
import { JOB_STATUSES, relayJobs } from '#drizzle/schema/relay.ts'

/** The newest run of a batch. */
export const runShape = z
  .object({
    status: z.enum(JOB_STATUSES),
    error: z.string().optional().meta({ description: 'why it failed, in words' }),
    code: z
      .string()
      .optional()
      .meta({
        description:
          'the code of the first payout that was not paid, such as `delegation-revoked` or `manifest-invalid`. `restored`: the run ' +
          'ended after a restore of the database. Look at the ledger, then start it again',
      }),
  })
  .meta({ description: 'the newest run, if the batch has had one' })

type Run = z.output<typeof runShape>

/** The newest run of a batch as JSON; null without one. */
export const NEWEST_RUN = sql<Run | null>`(select json_strip_nulls(json_build_object(
    'status', run.status, 'error', run.error, 'code', run.code))
  from ${relayJobs} as run where run.batch = ${batches}.id order by run.status = 'running' desc, run.created_at desc limit 1)`
