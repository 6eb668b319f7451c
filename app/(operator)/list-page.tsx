import type { FilterChecks } from '#lib/dashboard/filters.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import type { Position } from '#lib/db/paging.ts'
import type { Service } from '#lib/server/services.ts'
import { Frame } from './frame.tsx'
import type { ListDisplay } from './list-display.ts'
import { ListView, readShown } from './list-view.tsx'
import { addressOf, type Query, readQuery } from './query.ts'
import { requireOperator } from './require-operator.ts'

/** The page of a list, for the operator only. */
export function listPage<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  display: ListDisplay<Checks, Row, Shown>,
) {
  return async function ListPage({ searchParams }: Pick<PageProps<'/batches'>, 'searchParams'>) {
    const query = await readQuery(searchParams)
    const service = await requireOperator(addressOf(display.here, query))
    return await renderList(display, query, service)
  }
}

/** Reads a page of a list, and returns the element that shows it. */
export async function renderList<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  display: ListDisplay<Checks, Row, Shown>,
  query: Query,
  service: Service,
) {
  const { here, title, before } = display
  const data = await readIfReachable(service.database, async (db) => ({
    ...(await readShown(db, display, service, query)),
    before: await before?.(db, service),
  }))
  return (
    <Frame here={here} title={title} network={service.settings.network.name}>
      {data?.before}
      <ListView display={display} service={service} query={query} reading={data} />
    </Frame>
  )
}
