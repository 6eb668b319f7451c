import { type FilterNames, findFilterNames } from '#lib/dashboard/filter-names.ts'
import { type FilterChecks, type Filters, readFilters } from '#lib/dashboard/filters.ts'
import { type List, readList } from '#lib/dashboard/list.ts'
import type { Database } from '#lib/db/connection.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import type { Position } from '#lib/db/paging.ts'
import type { Service } from '#lib/server/services.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { FilterForm } from './filter-form.tsx'
import { BY_TIME, fileAddress, type ListDisplay, listContext } from './list-display.ts'
import { Pager } from './pager.tsx'
import { addressOf, firstPage, type Query } from './query.ts'
import { ACCENT, PageLink } from './record-links.tsx'
import { Empty, Table, Unreachable } from './table.tsx'
import { Tabs } from './tabs.tsx'

/** A page of a list as its database has it. */
export interface ListReading<Shown> {
  list: List<Shown>
  /** the names of the records by which the list is filtered */
  names: FilterNames
}

/** Reads a page of a list with the rows that it shows. */
export async function readShown<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  db: Database,
  { records, describe }: ListDisplay<Checks, Row, Shown>,
  service: Service,
  query: Query,
): Promise<ListReading<Shown>> {
  const { filters } = readFilters(records.filters, query)
  const list = await readList(records, listContext(db, service), filters, query)
  // Rows without a description are shown as they are.
  const rows = describe ? await describe(db, list.rows) : (list.rows as Shown[])
  return { list: { ...list, rows }, names: await findFilterNames(db, filters) }
}

interface ListViewProps<Checks extends FilterChecks, Row, Shown extends Row> {
  display: ListDisplay<Checks, Row, Shown>
  service: Service
  query: Query
  /** undefined while the database cannot be reached */
  reading: ListReading<Shown> | undefined
  /** on the page of a record: its path and name, and the filters that the path sets */
  within?: { path: string; title: string; filters: Query }
}

/** Every list of the dashboard: filters, tabs with counts, the records, totals and pages. */
export function ListView<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  props: ListViewProps<Checks, Row, Shown>,
) {
  const { display, service, query, reading, within } = props
  const { tabs, filters: checks } = display.records
  const { path, title } = within ?? { path: display.here, title: display.title }
  const { filters: all, unknown } = readFilters(checks, { ...query, ...within?.filters })
  const isOfPath = (name: string) => within !== undefined && name in within.filters
  const filters: Query = Object.fromEntries(Object.entries(all).filter(([name]) => !isOfPath(name)))
  const tab = tabs?.name
  return (
    <>
      {tabs && (
        <Tabs
          label={tabs.name === 'status' ? 'Status' : 'Result'}
          path={path}
          name={tabs.name}
          tabs={[['', 'All'], ...tabs.values.map((value) => [value, capitalized(value)] as const)]}
          query={query}
          counts={reading?.list.counts}
        />
      )}
      <FilterForm {...{ path, query, filters, unknown, tab }} names={reading?.names ?? {}}>
        {display.fields?.(all)}
      </FilterForm>
      {reading ? (
        <Records {...{ display, service, query, path, title, filters, all, tab }} list={reading.list} />
      ) : (
        <Unreachable />
      )}
    </>
  )
}

const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1)

interface RecordsProps<Checks extends FilterChecks, Row, Shown extends Row>
  extends Pick<ListViewProps<Checks, Row, Shown>, 'display' | 'service' | 'query'> {
  path: string
  title: string
  list: List<Shown>
  /** the filters that the user can change; the others are set by the path */
  filters: Query
  /** every filter, including any set by the path */
  all: Filters<Checks>
  tab: string | undefined
}

/** The records of a page, with their number, their order and their files. */
function Records<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  props: RecordsProps<Checks, Row, Shown>,
) {
  const { display, service, query, path, title, list, filters, all, tab } = props
  const { nouns, records, columns, moreFiles, sorts = 'sort' in records.filters ? BY_TIME : [] } = display
  const { settings, now } = service
  const isSet = (name: string) => name !== 'sort' && filters[name] !== ''
  const isFiltered = Object.keys(filters).some((name) => name !== tab && isSet(name))
  const isTab = tab !== undefined && isSet(tab) && !isFiltered
  const [order] = sorts.find(([value]) => value === query.sort) ?? sorts[0] ?? []
  const files = [{ list: display, of: `These ${nouns[1]}` }, ...(moreFiles?.(all) ?? [])]
  return (
    <>
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1 text-[0.8125rem] text-soft">
        <p role="status">{totalOf(list, nouns, isFiltered || isTab)}</p>
        {list.total > 0 && (
          <div className="flex flex-wrap gap-x-4 print:hidden">
            {sorts.length > 0 && (
              <nav aria-label="Order of the list" className="flex flex-wrap gap-x-2">
                {sorts.map(([sort, word]) => (
                  <PageLink
                    key={sort}
                    href={addressOf(path, { ...firstPage(query), sort })}
                    aria-current={sort === order ? 'true' : undefined}
                    name={word}
                    className={SORT}
                  />
                ))}
              </nav>
            )}
            {files.map((file) => (
              <a key={file.of} href={fileAddress(file.list, all)} download className={ACCENT}>
                {file.of} as CSV
              </a>
            ))}
          </div>
        )}
      </div>
      {list.rows.length > 0 ? (
        <Table
          caption={title}
          view={{ now: now(), network: settings.network.name }}
          columns={columns}
          rows={list.rows}
          keyOf={({ sequence }) => String(sequence)}
        />
      ) : isFiltered || list.previous !== undefined ? (
        <Empty title="Nothing found">
          <p>No record matches all filters.</p>
          <p>
            <PageLink href={addressOf(path, {})} name="Show all" className="" />
          </p>
        </Empty>
      ) : isTab && !display.isOneTab && list.counts.get('') ? (
        <Empty title={`No ${nouns[0]} has this status`} />
      ) : (
        <Empty {...display.empty(settings)} />
      )}
      <Pager path={path} query={query} list={list} />
    </>
  )
}

const SORT =
  'inline-block min-h-6 leading-6 whitespace-nowrap underline-offset-4 hover:underline aria-[current]:font-medium aria-[current]:text-ink aria-[current]:underline'

function totalOf({ total }: List<unknown>, [one, many]: readonly [string, string], isFiltered: boolean): string {
  const found = isFiltered ? ' found' : ''
  if (total > MAX_COUNTED) return `More than ${groupDigits(MAX_COUNTED)} ${many}${found}`
  return `${groupDigits(total)} ${total === 1 ? one : many}${found}`
}
