import type { Metadata } from 'next'
import { renderList } from '../list-rendering.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { ORGANISATION_LIST } from './organisation-list.tsx'

export const metadata: Metadata = { title: 'Organisations' }

/** All organisations with the numbers of their records. */
export default async function OrganisationsPage({ searchParams }: PageProps<'/organisations'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/organisations', query))
  return await renderList(ORGANISATION_LIST, query, service)
}
