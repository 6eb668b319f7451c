import { BATCH_LIST } from '../batches/batch-list.tsx'
import { csvOf } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvOf(BATCH_LIST)
