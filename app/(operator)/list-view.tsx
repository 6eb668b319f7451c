import Link from 'next/link'
import type { ReactNode } from 'react'
import type { FilterNames } from '#lib/dashboard/filter-names.ts'
import type { FilterChecks, Filters, UnknownFilter } from '#lib/dashboard/filters.ts'
import type { List } from '#lib/dashboard/list.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import type { Position } from '#lib/db/paging.ts'
import type { Service } from '#lib/server/services.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { FilterForm } from './filter-form.tsx'
import { Frame, type FrameProps } from './frame.tsx'
import { BY_TIME, fileOf, type ListDisplay, type ListFile, type Sorts } from './list-display.ts'
import { Pager } from './pager.tsx'
import { addressOf, firstPage, type Query } from './query.ts'
import { Empty, Table, Unreachable } from './table.tsx'
import { type Tab, Tabs } from './tabs.tsx'

export interface ListViewProps<Checks extends FilterChecks, Row, Shown extends Row> {
  display: ListDisplay<Checks, Row, Shown>
  service: Service
  query: Query
  filters: Filters<Checks>
  /** the parameters of the query that the list doesn't have */
  unknown: readonly UnknownFilter[]
  /** the names of the records by which the list is filtered */
  names: FilterNames
  /** undefined while the database cannot be reached */
  list: List<Shown> | undefined
  /** shown between the title and the list */
  before?: ReactNode
  /** on the page of a record: the filters that the path sets, and what else the page shows */
  within?: { filters: Query; path: string; title: string; above: FrameProps['above']; after: ReactNode }
}

/** Every list of the dashboard: filters, tabs with counts, the records, totals and pages. */
export function ListView<Checks extends FilterChecks, Row extends Position, Shown extends Row>(
  props: ListViewProps<Checks, Row, Shown>,
) {
  const { display, service, query, list, before, within } = props
  const { here, nouns, records, moreFiles } = display
  const { title, path, above, after } = { title: display.title, path: here, ...within }
  const { settings, now } = service
  const network = settings.network.name
  const isOfPath = (name: string) => within !== undefined && name in within.filters
  const filters: Query = Object.fromEntries(Object.entries(props.filters).filter(([name]) => !isOfPath(name)))
  const tab = records.tabs?.name
  const isSet = (name: string) => name !== 'sort' && filters[name] !== ''
  const isFiltered = Object.keys(filters).some((name) => name !== tab && isSet(name))
  const isTab = tab !== undefined && isSet(tab) && !isFiltered
  const sorts = display.sorts ?? ('sort' in records.filters ? BY_TIME : [])
  const files = [{ list: display, of: `These ${nouns[1]}` }, ...(moreFiles?.(props.filters) ?? [])]
  return (
    <Frame here={here} title={title} network={network} above={above}>
      {before}
      {records.tabs && (
        <Tabs
          label={records.tabs.name === 'status' ? 'Status' : 'Result'}
          path={path}
          name={records.tabs.name}
          tabs={tabsOf(records.tabs.values)}
          query={query}
          counts={list?.counts}
        />
      )}
      <FilterForm {...props} path={path} filters={filters} tab={tab}>
        {display.fields?.(props.filters)}
      </FilterForm>
      {list ? (
        <>
          <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1 text-[0.8125rem] text-soft">
            <p role="status">{totalOf(list, nouns, isFiltered || isTab)}</p>
            {list.total > 0 && (
              <div className="flex flex-wrap gap-x-4 print:hidden">
                {sorts.length > 0 && <SortedBy sorts={sorts} path={path} query={query} />}
                <Files files={files} filters={props.filters} />
              </div>
            )}
          </div>
          {list.rows.length === 0 ? (
            <Empty>
              {isFiltered || list.previous !== undefined ? (
                <NothingFound path={path} />
              ) : isTab && !display.isOneTab && list.counts.get('') ? (
                <strong>No {nouns[0]} has this status</strong>
              ) : (
                display.empty(settings)
              )}
            </Empty>
          ) : (
            <Table
              caption={title}
              view={{ now: now(), network }}
              columns={display.columns}
              rows={list.rows}
              keyOf={({ sequence }) => String(sequence)}
            />
          )}
          <Pager path={path} query={query} list={list} />
        </>
      ) : (
        <Unreachable />
      )}
      {after && <div className="mt-8">{after}</div>}
    </Frame>
  )
}

const tabsOf = (values: readonly string[]): Tab[] => [
  ['', 'All'],
  ...values.map((value) => [value, value.charAt(0).toUpperCase() + value.slice(1)] as const),
]

function SortedBy({ sorts, path, query }: { sorts: Sorts; path: string; query: Query }) {
  const current = sorts.find(([value]) => value === query.sort) ?? sorts[0]
  return (
    <nav aria-label="Order of the list" className="flex flex-wrap gap-x-2">
      {sorts.map((sort) => (
        <Link
          key={sort[0]}
          href={addressOf(path, { ...firstPage(query), sort: sort[0] })}
          prefetch={false}
          aria-current={sort === current ? 'true' : undefined}
          className="inline-block min-h-6 leading-6 whitespace-nowrap underline-offset-4 hover:underline aria-[current]:font-medium aria-[current]:text-ink aria-[current]:underline"
        >
          {sort[1]}
        </Link>
      ))}
    </nav>
  )
}

function Files({ files, filters }: { files: readonly ListFile[]; filters: Query }) {
  return files.map((file) => (
    <a
      key={file.of}
      href={addressOf(fileOf(file.list), { ...filters, sort: '' })}
      download
      className="inline-block min-h-6 leading-6 text-accent underline-offset-4 hover:underline"
    >
      {file.of} as CSV
    </a>
  ))
}

function totalOf({ total }: List<unknown>, [one, many]: readonly [string, string], isFiltered: boolean): string {
  const found = isFiltered ? ' found' : ''
  if (total > MAX_COUNTED) return `More than ${groupDigits(MAX_COUNTED)} ${many}${found}`
  return `${groupDigits(total)} ${total === 1 ? one : many}${found}`
}

function NothingFound({ path }: { path: string }) {
  return (
    <>
      <strong>Nothing found</strong>
      <p>No record matches all filters.</p>
      <p>
        <Link href={addressOf(path, {})} prefetch={false}>
          Show all
        </Link>
      </p>
    </>
  )
}
