import { type JobLine, readJobs } from '#lib/dashboard/jobs.ts'
import { jobState } from '#lib/dashboard/lateness.ts'
import type { Filters, ListRequest } from '#lib/dashboard/list.ts'
import type { ListFile } from '../csv-file.ts'
import { statusWord } from '../status.tsx'

/** How many items of a job have a status. */
export function countItems({ items }: JobLine, status: string): number {
  return items.filter((item) => item.status === status).length
}

export const JOB_LIST: ListFile<Filters<ListRequest>, JobLine> = {
  name: 'jobs',
  filters: ({ q = '', status = '', organisation = '' }) => ({ q, status, organisation }),
  read: (db, filters) => readJobs(db, filters),
  columns: [
    ['Created (UTC)', ({ createdAt }) => createdAt],
    ['Organisation', ({ organisationName }) => organisationName],
    ['User', ({ userEmail, userSub }) => userEmail ?? userSub],
    ['Status', (job, now) => statusWord('job', jobState(job, now))],
    ['Paid', (job) => countItems(job, 'paid')],
    ['Failed', (job) => countItems(job, 'failed')],
    ['Transfers', ({ items }) => items.length],
    ['Error', ({ error }) => error],
    ['Ended (UTC)', ({ endedAt }) => endedAt],
    ['Job id', ({ id }) => id],
  ],
}
