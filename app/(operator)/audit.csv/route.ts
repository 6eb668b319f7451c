import { AUDIT_LIST } from '../audit/audit-list.tsx'
import { csvOf } from '../csv-file.ts'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvOf(AUDIT_LIST)
