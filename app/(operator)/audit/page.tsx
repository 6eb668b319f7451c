import type { Metadata } from 'next'
import { AUDIT_FILTERS, actorOf, listAudit } from '#lib/dashboard/audit.ts'
import { ACTIONS_IN_WORDS, describeEntries, nameActor } from '#lib/dashboard/audit-words.ts'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { FIELD } from '../filter-form.tsx'
import { BY_TIME } from '../list-display.ts'
import { ListView } from '../list-view.tsx'
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
  const actor = actorOf(filters.actor)
  const data = await readIfReachable(database, async (db) => {
    const list = await listAudit(db, filters, query)
    return {
      list: { ...list, rows: await describeEntries(db, list.rows) },
      names: { ...(await findFilterNames(db, filters)), actor: actor && (await nameActor(db, actor)) },
    }
  })
  return (
    <ListView
      here="/audit"
      title="Audit log"
      network={network}
      path="/audit"
      now={now()}
      query={query}
      list={data?.list}
      nouns={['entry', 'entries']}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      sorts={BY_TIME}
      fields={<Fields action={filters.action} />}
      csv={[{ list: AUDIT_LIST, of: 'These entries' }]}
      columns={auditColumns(now())}
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
      className={`${FIELD} max-sm:w-full sm:max-w-80`}
    >
      <option value="">All actions</option>
      {ACTIONS_IN_WORDS.map(([name, words]) => (
        <option key={name} value={name}>
          {words}
        </option>
      ))}
    </select>
  )
}
