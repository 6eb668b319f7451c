import { csvFile } from '../csv-file.ts'
import { ORGANISATION_LIST } from '../organisations/organisation-list.tsx'

export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = csvFile(ORGANISATION_LIST)
