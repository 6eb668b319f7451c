import { BATCH_LIST } from '../batches/batch-list.tsx'
import { csvFile } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(BATCH_LIST)
