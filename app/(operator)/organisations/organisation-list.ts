import type { ListRequest } from '#lib/dashboard/list.ts'
import { type OrganisationLine, readOrganisations } from '#lib/dashboard/organisations.ts'
import type { ListFile } from '../csv-file.ts'

export const ORGANISATION_LIST: ListFile<Pick<ListRequest, 'q'>, OrganisationLine> = {
  name: 'organisations',
  filters: ({ q = '' }) => ({ q }),
  read: (db, filters, now) => readOrganisations(db, filters, now),
  columns: [
    ['Organisation', ({ name }) => name],
    ['Users', ({ users }) => users.map(({ email, sub }) => email ?? sub).join(', ')],
    ['Contractors', ({ contractors }) => contractors],
    ['Batches', ({ batches }) => batches],
    ['In progress', ({ started }) => started],
    ['Stalled', ({ stalled }) => stalled],
    ['Last paid (UTC)', ({ lastPaidAt }) => lastPaidAt],
    ['Created (UTC)', ({ createdAt }) => createdAt],
    ['Organisation id', ({ id }) => id],
  ],
}
