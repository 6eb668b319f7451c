import { csvOf } from '../csv-file.ts'
import { TRANSFER_LIST } from '../transfers/transfer-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvOf(TRANSFER_LIST)
