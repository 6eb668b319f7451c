import type { Metadata } from 'next'
import { listPage } from '../list-page.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { CONTRACTOR_LIST } from './contractor-list.tsx'

export const metadata: Metadata = { title: 'Contractors' }

/** The contractors of all organisations. */
export default async function ContractorsPage({ searchParams }: PageProps<'/contractors'>) {
  const query = await readQuery(searchParams)
  return await listPage(CONTRACTOR_LIST, query, await requireOperator(addressOf('/contractors', query)))
}
