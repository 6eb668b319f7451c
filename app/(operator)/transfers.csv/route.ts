import { csvFile } from '../csv-file.ts'
import { TRANSFER_LIST } from '../transfers/transfer-list.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(TRANSFER_LIST)
