import { CONTRACTOR_LIST } from '../contractors/contractor-list.tsx'
import { csvOf } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvOf(CONTRACTOR_LIST)
