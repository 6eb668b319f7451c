import { csvOf } from '../csv-file.ts'
import { REFUSAL_LIST } from '../transfers/refusal-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvOf(REFUSAL_LIST)
