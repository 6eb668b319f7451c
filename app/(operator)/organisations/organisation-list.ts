import { ORGANISATION_FILTERS, type OrganisationLine, readOrganisations } from '#lib/dashboard/organisations.ts'
import type { ListFile } from '../csv-file.ts'

export const ORGANISATION_LIST: ListFile<typeof ORGANISATION_FILTERS, OrganisationLine> = {
  name: 'organisations',
  checks: ORGANISATION_FILTERS,
  read: (db, filters, _, now) => readOrganisations(db, filters, now),
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
