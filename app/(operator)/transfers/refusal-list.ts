import type { Filters } from '#lib/dashboard/list.ts'
import { type RefusalLine, type RefusalRequest, readRefusals } from '#lib/dashboard/refusals.ts'
import type { ListFile } from '../csv-file.ts'

export const REFUSAL_LIST: ListFile<Filters<RefusalRequest>, RefusalLine> = {
  name: 'refusals',
  filters: ({ q = '', organisation = '', contractor = '' }) => ({ q, organisation, contractor }),
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
