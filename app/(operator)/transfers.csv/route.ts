import { csvFile } from '../csv-file.ts'
import { TRANSFER_LIST } from '../transfers/transfer-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(TRANSFER_LIST)
