import { CONTRACTOR_LIST } from '../contractors/contractor-list.tsx'
import { csvFile } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(CONTRACTOR_LIST)
