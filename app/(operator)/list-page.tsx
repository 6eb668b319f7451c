import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { type FilterChecks, readFilters } from '#lib/dashboard/filters.ts'
import { readList } from '#lib/dashboard/list.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import type { Position } from '#lib/db/paging.ts'
import type { Service } from '#lib/server/services.ts'
import { type ListDisplay, listContext } from './list-display.ts'
import { ListView, type ListViewProps } from './list-view.tsx'
import type { Query } from './query.ts'
import type { Tab } from './tabs.tsx'

type Addition<Row> = Pick<ListViewProps<Row>, 'above' | 'before' | 'after' | 'within'> & {
  path?: string
  title?: string
}

/** Reads a page of a list, and returns the element that shows it. A page may add to it, such as the batch that it is `within`. */
export async function listPage<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  display: ListDisplay<Checks, Row, Shown>,
  query: Query,
  service: Service,
  addition: Addition<Shown> = {},
) {
  const { records, describe, ...list } = display
  const { filters, unknown } = readFilters(records.filters, { ...query, ...addition.within })
  const data = await readIfReachable(service.database, async (db) => {
    const page = await readList(records, listContext(db, service), filters, query)
    // Rows without a description are shown as they are.
    const rows = describe ? await describe(db, page.rows) : (page.rows as Shown[])
    const before = await list.before?.(db, service)
    return { page: { ...page, rows }, before, names: await findFilterNames(db, filters) }
  })
  return (
    <ListView
      {...list}
      path={list.here}
      network={service.settings.network.name}
      now={service.now()}
      query={query}
      keyOf={({ sequence }) => String(sequence)}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      list={data?.page}
      tabs={records.tabs && { label: list.tabs ?? '', name: records.tabs.name, tabs: tabsOf(records.tabs.values) }}
      fields={list.fields?.(filters)}
      csv={[{ list, of: `These ${list.nouns[1]}` }, ...(list.moreFiles?.(filters) ?? [])]}
      empty={list.empty(service.settings)}
      before={data?.before}
      {...addition}
    />
  )
}

const tabsOf = (values: readonly string[]): Tab[] => [
  ['', 'All'],
  ...values.map((value) => [value, value.charAt(0).toUpperCase() + value.slice(1)] as const),
]
