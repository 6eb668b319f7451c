import type { Metadata } from 'next'
import { AUDIT_ACTION_NAMES, AUDIT_FILTERS, listAudit } from '#lib/dashboard/audit.ts'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { FIELD } from '../filter-form.tsx'
import { BY_TIME, ListView } from '../list-view.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { auditColumns } from './audit-columns.tsx'
import { AUDIT_LIST } from './audit-list.ts'

export const metadata: Metadata = { title: 'Audit log' }

/** The audit log: each entry with its actor, action, record and time. */
export default async function AuditPage({ searchParams }: PageProps<'/audit'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/audit', query))
  const { database, settings, now } = service
  const { filters, unknown } = readFilters(AUDIT_FILTERS, query)
  const network = settings.network.name
  const data = await readIfReachable(database, async (db) => ({
    list: await listAudit(db, filters, query),
    names: await findFilterNames(db, filters),
  }))
  return (
    <ListView
      here="/audit"
      title="Audit log"
      network={network}
      path="/audit"
      query={query}
      list={data?.list}
      nouns={['entry', 'entries']}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      sorts={BY_TIME}
      fields={<Fields action={filters.action} />}
      csv={[{ list: AUDIT_LIST, of: 'These entries' }]}
      columns={auditColumns(network, now())}
      keyOf={({ sequence }) => String(sequence)}
      empty={
        <>
          <strong>No entries</strong>
          <p>Every change to a record is logged here. Entries cannot be changed or removed.</p>
        </>
      }
    />
  )
}

function Fields({ action }: { action: string }) {
  return (
    <select
      name="action"
      aria-label="Action"
      key={`action ${action}`}
      defaultValue={action}
      className={`${FIELD} max-sm:w-full`}
    >
      <option value="">All actions</option>
      {AUDIT_ACTION_NAMES.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  )
}
