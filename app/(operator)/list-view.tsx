import Link from 'next/link'
import type { ReactNode } from 'react'
import type { UnknownFilter } from '#lib/dashboard/filters.ts'
import type { List } from '#lib/dashboard/list.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { FilterForm } from './filter-form.tsx'
import { Frame, type FrameProps } from './frame.tsx'
import { fileOf, type ListFile, type Sorts } from './list-display.ts'
import { Pager } from './pager.tsx'
import { addressOf, firstPage, type Query } from './query.ts'
import { type Column, Empty, Table, Unreachable } from './table.tsx'
import { type Tab, Tabs } from './tabs.tsx'

export interface ListViewProps<Row> extends Pick<FrameProps, 'here' | 'title' | 'network' | 'above'> {
  path: string
  now: Date
  query: Query
  filters: Readonly<Record<string, string>>
  /** the filters that the path sets */
  within?: Query
  /** the parameters of the query that the list doesn't have */
  unknown: readonly UnknownFilter[]
  /** the names of the records by which the list is filtered */
  names: Readonly<Record<string, string | undefined>>
  /** undefined while the database cannot be reached */
  list: List<Row> | undefined
  /** the noun for one record, and its plural */
  nouns: readonly [one: string, many: string]
  tabs?: { label: string; name: string; tabs: readonly Tab[] }
  sorts?: Sorts
  /** further fields of the filter form */
  fields?: ReactNode
  /** the CSV files of the list, for the same filters */
  csv: ListFile[]
  /** shown between the title and the list */
  before?: ReactNode
  /** shown below the list */
  after?: ReactNode
  /** the text for a list without any record, with the next step */
  empty: ReactNode
  /** the text for a chosen tab without any record */
  emptyTab?: ReactNode
  columns: readonly Column<Row>[]
  keyOf: (row: Row) => string
}

/** Every list of the dashboard: filters, tabs with counts, the records, totals and pages. */
export function ListView<Row>(props: ListViewProps<Row>) {
  const { here, title, network, above, path, now, query, within = {}, list, tabs, sorts = [], before, after } = props
  const filters = Object.fromEntries(Object.entries(props.filters).filter(([name]) => !(name in within)))
  const isSet = (name: string) => name !== 'sort' && filters[name] !== ''
  const isFiltered = Object.keys(filters).some((name) => name !== tabs?.name && isSet(name))
  const isTab = tabs !== undefined && isSet(tabs.name) && !isFiltered
  return (
    <Frame here={here} title={title} network={network} above={above}>
      {before}
      {tabs && <Tabs {...tabs} path={path} query={query} counts={list?.counts} />}
      <FilterForm {...props} filters={filters} tab={tabs?.name}>
        {props.fields}
      </FilterForm>
      {list ? (
        <>
          <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1 text-[0.8125rem] text-soft">
            <p role="status">{totalOf(list, props.nouns, isFiltered || isTab)}</p>
            {list.total > 0 && (
              <div className="flex flex-wrap gap-x-4 print:hidden">
                {sorts.length > 0 && <SortedBy sorts={sorts} path={path} query={query} />}
                <Files {...props} />
              </div>
            )}
          </div>
          {list.rows.length === 0 ? (
            <Empty>
              {isFiltered || list.previous !== undefined ? (
                <NothingFound path={path} />
              ) : isTab ? (
                <TabEmpty {...props} />
              ) : (
                props.empty
              )}
            </Empty>
          ) : (
            <Table
              caption={title}
              view={{ now, network }}
              columns={props.columns}
              rows={list.rows}
              keyOf={props.keyOf}
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

function SortedBy({ sorts, path, query }: { sorts: Sorts; path: string; query: Query }) {
  const current = sorts.find(([value]) => value === query.sort) ?? sorts[0]
  return (
    <nav aria-label="Order of the list" className="flex gap-x-2">
      {sorts.map((sort) => (
        <Link
          key={sort[0]}
          href={addressOf(path, { ...firstPage(query), sort: sort[0] })}
          prefetch={false}
          aria-current={sort === current ? 'true' : undefined}
          className="inline-block min-h-6 leading-6 underline-offset-4 hover:underline aria-[current]:font-medium aria-[current]:text-ink aria-[current]:underline"
        >
          {sort[1]}
        </Link>
      ))}
    </nav>
  )
}

function Files<Row>({ csv, filters }: Pick<ListViewProps<Row>, 'csv' | 'filters'>) {
  return csv.map((file) => (
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

/** A tab may be empty while others are not. */
function TabEmpty<Row>({ list, nouns, empty, emptyTab }: ListViewProps<Row>) {
  if (emptyTab) return emptyTab
  return list?.counts.get('') ? <strong>No {nouns[0]} has this status</strong> : empty
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
