import type { Metadata } from 'next'
import { renderList } from '../list-rendering.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { AUDIT_LIST } from './audit-list.tsx'

export const metadata: Metadata = { title: 'Audit log' }

/** The audit log: each entry with its actor, action, record and time. */
export default async function AuditPage({ searchParams }: PageProps<'/audit'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/audit', query))
  return await renderList(AUDIT_LIST, query, service)
}
