import { csvFile } from '../csv-file.ts'
import { JOB_LIST } from '../jobs/job-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(JOB_LIST)
