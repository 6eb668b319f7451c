import { csvFile } from '../csv-file.ts'
import { REFUSAL_LIST } from '../transfers/refusal-list.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(REFUSAL_LIST)
