import type { ReactNode } from 'react'

/**
 * A column: `from` is the width of the page from which it is shown. On narrower ones it stands under the first column, with
 * its name, if it `isRepeated`.
 */
export interface Column<Row> {
  head: string
  cell: (row: Row) => ReactNode
  from?: 'sm' | 'md' | 'lg' | 'xl'
  isRepeated?: boolean
  isNumber?: boolean
}

const SHOWN = { sm: 'max-sm:hidden', md: 'max-md:hidden', lg: 'max-lg:hidden', xl: 'max-xl:hidden' } as const

const REPEATED = { sm: 'sm:hidden', md: 'md:hidden', lg: 'lg:hidden', xl: 'xl:hidden' } as const

interface TableProps<Row> {
  /** what it lists, for those who cannot see it */
  caption: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
}

/** A list of records. */
export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>) {
  const classOf = ({ from, isNumber }: Column<Row>) =>
    `px-3 first:pl-4 last:pr-4 ${from ? SHOWN[from] : ''} ${isNumber ? 'text-right' : 'text-left'}`
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-surface shadow-card">
      <table className="w-full border-collapse">
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr className="border-b border-line">
            {columns.map((column) => (
              <th
                key={column.head}
                scope="col"
                className={`py-2 text-xs font-medium whitespace-nowrap text-faint ${classOf(column)}`}
              >
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows.map((row) => (
            <tr key={keyOf(row)} className="transition-colors hover:bg-raised">
              {columns.map((column, index) => (
                <td key={column.head} className={`py-2.5 align-top max-sm:[&>time>span]:block ${classOf(column)}`}>
                  {column.cell(row)}
                  {index === 0 && <Repeated columns={columns} row={row} />}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Repeated<Row>({ columns, row }: Pick<TableProps<Row>, 'columns'> & { row: Row }) {
  return columns.map(({ head, cell, from, isRepeated }) => {
    const value = isRepeated && cell(row)
    if (!from || !value || value === '–') return null
    return (
      <div key={head} className={`mt-0.5 text-xs text-faint ${REPEATED[from]}`}>
        {head} {value}
      </div>
    )
  })
}

/** What stands where nothing is yet. */
export function Empty({ children }: { children: ReactNode }) {
  return (
    <div className="space-y-2 rounded-lg border border-dashed border-edge px-6 py-10 text-center text-soft [&_a]:text-accent [&_a]:underline [&_a]:underline-offset-4 [&_strong]:block [&_strong]:font-medium [&_strong]:text-ink">
      {children}
    </div>
  )
}

/** What a page says while the database cannot be reached. */
export function Unreachable() {
  return (
    <Empty>
      <strong>The database cannot be reached</strong>
      <p>Nothing is lost: the service decides open transfers once it is back. This page tries again by itself.</p>
    </Empty>
  )
}
