import type { Metadata } from 'next'
import { renderList } from '../list-rendering.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { CONTRACTOR_LIST } from './contractor-list.tsx'

export const metadata: Metadata = { title: 'Contractors' }

/** The contractors of all organisations. */
export default async function ContractorsPage({ searchParams }: PageProps<'/contractors'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/contractors', query))
  return await renderList(CONTRACTOR_LIST, query, service)
}
