import { AUDIT_LIST } from '../audit/audit-list.ts'
import { csvFile } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(AUDIT_LIST)
