import { AUDIT_LIST } from '../audit/audit-list.tsx'
import { csvFile } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(AUDIT_LIST)
