import { csvFile } from '../csv-file.ts'
import { PAYOUT_LIST } from '../payouts/payout-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(PAYOUT_LIST)
