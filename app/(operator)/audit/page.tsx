import type { Metadata } from 'next'
import { listPage } from '../list-page.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { AUDIT_LIST } from './audit-list.tsx'

export const metadata: Metadata = { title: 'Audit log' }

/** The audit log: each entry with its actor, action, record and time. */
export default async function AuditPage({ searchParams }: PageProps<'/audit'>) {
  const query = await readQuery(searchParams)
  return await listPage(AUDIT_LIST, query, await requireOperator(addressOf('/audit', query)))
}
