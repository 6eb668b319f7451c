import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { type FilterChecks, readFilters } from '#lib/dashboard/filters.ts'
import { readList } from '#lib/dashboard/list.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import type { Position } from '#lib/db/paging.ts'
import type { Service } from '#lib/server/services.ts'
import { type ListDisplay, listContext } from './list-display.ts'
import { ListView, type ListViewProps } from './list-view.tsx'
import type { Query } from './query.ts'

/** Reads a page of a list, which may be part of the page of a record, and returns the element that shows it. */
export async function renderList<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  display: ListDisplay<Checks, Row, Shown>,
  query: Query,
  service: Service,
  around: Pick<ListViewProps<Checks, Row, Shown>, 'before' | 'within'> = {},
) {
  const { records, describe, before } = display
  const { filters, unknown } = readFilters(records.filters, { ...query, ...around.within?.filters })
  const data = await readIfReachable(service.database, async (db) => {
    const list = await readList(records, listContext(db, service), filters, query)
    // Rows without a description are shown as they are.
    const rows = describe ? await describe(db, list.rows) : (list.rows as Shown[])
    return { list: { ...list, rows }, before: await before?.(db, service), names: await findFilterNames(db, filters) }
  })
  return (
    <ListView
      {...{ display, query, service, filters, unknown }}
      names={data?.names ?? {}}
      list={data?.list}
      before={data?.before}
      {...around}
    />
  )
}
