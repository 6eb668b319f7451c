import { PAYOUT_LIST } from '../batches/[id]/payout-list.ts'
import { csvFile } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(PAYOUT_LIST)
