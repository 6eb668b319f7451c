import type { Metadata } from 'next'
import { listPage } from '../list-page.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { BATCH_LIST } from './batch-list.tsx'

export const metadata: Metadata = { title: 'Batches' }

/** The batches of all organisations. */
export default async function BatchesPage({ searchParams }: PageProps<'/batches'>) {
  const query = await readQuery(searchParams)
  return await listPage(BATCH_LIST, query, await requireOperator(addressOf('/batches', query)))
}
