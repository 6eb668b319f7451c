import { csvFile } from '../csv-file.ts'
import { REFUSAL_LIST } from '../transfers/refusal-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(REFUSAL_LIST)
