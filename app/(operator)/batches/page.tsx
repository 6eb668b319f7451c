import type { Metadata } from 'next'
import { renderList } from '../list-rendering.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { BATCH_LIST } from './batch-list.tsx'

export const metadata: Metadata = { title: 'Batches' }

/** The batches of all organisations. */
export default async function BatchesPage({ searchParams }: PageProps<'/batches'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/batches', query))
  return await renderList(BATCH_LIST, query, service)
}
