import type { Metadata } from 'next'
import { renderList } from '../list-rendering.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { JOB_LIST } from './job-list.tsx'

export const metadata: Metadata = { title: 'Jobs' }

/** The relay: its channels and jobs. */
export default async function JobsPage({ searchParams }: PageProps<'/jobs'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/jobs', query))
  return await renderList(JOB_LIST, query, service)
}
