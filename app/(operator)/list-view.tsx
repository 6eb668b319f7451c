import Link from 'next/link'
import type { ReactNode } from 'react'
import type { List } from '#lib/dashboard/list.ts'
import { fileOf } from './csv-file.ts'
import { groupDigits } from './figures.tsx'
import { Frame, type FrameProps } from './frame.tsx'
import { Pager } from './pager.tsx'
import { addressOf, type Query } from './query.ts'
import { type Filter, SearchForm } from './search-form.tsx'
import { type Column, Empty, Table, Unreachable } from './table.tsx'
import { type Tab, Tabs } from './tabs.tsx'

interface ListViewProps<Row> extends Pick<FrameProps, 'here' | 'title' | 'network' | 'above'> {
  path: string
  query: Query
  /** undefined while the database cannot be reached */
  list: List<Row> | undefined
  /** the noun for one record, and its plural */
  nouns: readonly [one: string, many: string]
  /** the fields that a search matches */
  searches: string
  tabs?: { label: string; name: string; tabs: readonly Tab[] }
  filters?: readonly Filter[]
  /** further fields of the search form */
  fields?: ReactNode
  /** the CSV files of the list: for the same query, and what they contain */
  csv: { list: { name: string }; query?: Query; of: string }[]
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

/** Every list of the dashboard: search, filters, tabs with counts, the records, totals and pages. */
export function ListView<Row>(props: ListViewProps<Row>) {
  const {
    here,
    title,
    network,
    above,
    path,
    query,
    list,
    searches,
    tabs,
    filters = [],
    fields,
    csv,
    before,
    after,
  } = props
  const isSet = (name: string) => name !== 'page' && query[name] !== undefined && query[name] !== ''
  const isFiltered = Object.keys(query).some((name) => name !== tabs?.name && isSet(name))
  const isTab = tabs !== undefined && isSet(tabs.name) && !isFiltered
  return (
    <Frame here={here} title={title} network={network} above={above}>
      {before}
      {tabs && <Tabs {...tabs} path={path} query={query} counts={list?.counts} />}
      <SearchForm path={path} query={query} searches={searches} tab={tabs?.name} filters={filters}>
        {fields}
      </SearchForm>
      {list ? (
        <>
          <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1 text-[0.8125rem] text-soft">
            <p role="status">{totalOf(list, props.nouns, isFiltered || isTab)}</p>
            {list.total > 0 && (
              <p className="flex flex-wrap gap-x-4 print:hidden">
                {csv.map((file) => (
                  <a
                    key={file.of}
                    href={addressOf(fileOf(file.list), { ...withoutPage(query), ...file.query })}
                    download
                    className="text-accent underline-offset-4 hover:underline"
                  >
                    {file.of} as CSV
                  </a>
                ))}
              </p>
            )}
          </div>
          {list.rows.length === 0 ? (
            <Empty>
              {isFiltered ? (
                <NothingFound path={path} searches={searches} />
              ) : isTab ? (
                <TabEmpty {...props} />
              ) : (
                props.empty
              )}
            </Empty>
          ) : (
            <Table
              caption={`${title}, page ${list.page} of ${list.pages}`}
              columns={props.columns}
              rows={list.rows}
              keyOf={props.keyOf}
            />
          )}
          <Pager path={path} query={query} page={list.page} pages={list.pages} />
        </>
      ) : (
        <Unreachable />
      )}
      {after && <div className="mt-8">{after}</div>}
    </Frame>
  )
}

const withoutPage = ({ page: _, ...query }: Query): Query => query

function totalOf(list: List<unknown>, [one, many]: readonly [string, string], isFiltered: boolean): string {
  const { total, page, pages } = list
  const place = pages > 1 ? `, page ${page} of ${pages}` : ''
  return `${groupDigits(total)} ${total === 1 ? one : many}${isFiltered ? ' found' : ''}${place}`
}

/** A tab may be empty while others are not. */
function TabEmpty<Row>({ list, nouns, empty, emptyTab }: ListViewProps<Row>) {
  if (emptyTab) return emptyTab
  return list?.counts.get('') ? <strong>No {nouns[0]} has this status</strong> : empty
}

function NothingFound({ path, searches }: { path: string; searches: string }) {
  return (
    <>
      <strong>Nothing found</strong>
      <p>The search matches {searches}.</p>
      <p>
        <Link href={addressOf(path, {})} prefetch={false}>
          Show all
        </Link>
      </p>
    </>
  )
}
