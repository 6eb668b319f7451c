import { JOB_FILTERS, type JobSummary, readJobs } from '#lib/dashboard/jobs.ts'
import { jobState } from '#lib/dashboard/lateness.ts'
import type { ListFile } from '../csv-file.ts'
import { statusWord } from '../status.tsx'

export const JOB_LIST: ListFile<typeof JOB_FILTERS, JobSummary> = {
  name: 'jobs',
  checks: JOB_FILTERS,
  read: (db, filters) => readJobs(db, filters),
  columns: [
    ['Created (UTC)', ({ createdAt }) => createdAt],
    ['Organisation', ({ organisationName }) => organisationName],
    ['User', ({ userEmail, userSub }) => userEmail ?? userSub],
    ['Status', (job, now) => statusWord('job', jobState(job, now))],
    ['Paid', ({ items }) => items.paid],
    ['Failed', ({ items }) => items.failed],
    ['Transfers', ({ items }) => items.all],
    ['Error', ({ error }) => error],
    ['Ended (UTC)', ({ endedAt }) => endedAt],
    ['Job id', ({ id }) => id],
  ],
}
