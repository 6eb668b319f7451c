import { isOneOf } from '#lib/dashboard/filters.ts'
import { REFUSAL_FILTERS, type RefusalLine, readRefusals } from '#lib/dashboard/refusals.ts'
import type { ListFile } from '../csv-file.ts'

/** The transfers page shows the refusals in a tab. */
const CHECKS = { ...REFUSAL_FILTERS, view: isOneOf(['refused']) }

export const REFUSAL_LIST: ListFile<typeof CHECKS, RefusalLine> = {
  name: 'refusals',
  checks: CHECKS,
  read: (db, filters) => readRefusals(db, filters),
  columns: [
    ['Refused (UTC)', ({ createdAt }) => createdAt],
    ['Reason', ({ words }) => words],
    ['Code', ({ reason }) => reason],
    ['Organisation', ({ organisationName }) => organisationName],
    ['Account', ({ account }) => account],
    ['Inner hash', ({ innerHash }) => innerHash],
  ],
}
