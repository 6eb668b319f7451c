import { csvOf } from '../csv-file.ts'
import { PAYOUT_LIST } from '../payouts/payout-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvOf(PAYOUT_LIST)
