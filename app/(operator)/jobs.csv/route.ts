import { csvOf } from '../csv-file.ts'
import { JOB_LIST } from '../jobs/job-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvOf(JOB_LIST)
