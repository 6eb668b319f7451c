import type { Metadata } from 'next'
import { listPage } from '../list-page.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { ORGANISATION_LIST } from './organisation-list.tsx'

export const metadata: Metadata = { title: 'Organisations' }

/** All organisations with the numbers of their records. */
export default async function OrganisationsPage({ searchParams }: PageProps<'/organisations'>) {
  const query = await readQuery(searchParams)
  return await listPage(ORGANISATION_LIST, query, await requireOperator(addressOf('/organisations', query)))
}
