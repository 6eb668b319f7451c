import type { ReactNode } from 'react'
import type { CsvValue } from '#lib/text/csv.ts'
import type { View } from './figures.tsx'

/**
 * A column of a table, of the CSV file with the same records, or of both. `from` is the page width from which it is a
 * separate column. On narrower pages its value is below the first column, with its name, unless it `isOmitted` there.
 */
export interface Column<Row, FileRow = Row> {
  head: string
  /** absent if only the file has the column */
  cell?: (row: Row, view: View) => ReactNode
  /** absent if only the table has the column */
  value?: (row: FileRow, now: Date) => CsvValue
  /** the head in the file, if it differs */
  fileHead?: string
  /** of the first column: the content below its cell, as wide as the row on a phone */
  beneath?: (row: Row, view: View) => ReactNode
  from?: 'sm' | 'md' | 'lg' | 'xl'
  isOmitted?: boolean
  isNumber?: boolean
  /** of the name of a record: on a wide page, it has room for two or three words on a line */
  isName?: boolean
}

const SHOWN = { sm: 'max-sm:hidden', md: 'max-md:hidden', lg: 'max-lg:hidden', xl: 'max-xl:hidden' } as const

const REPEATED = { sm: 'sm:hidden', md: 'md:hidden', lg: 'lg:hidden', xl: 'xl:hidden' } as const

interface TableProps<Row> {
  /** its accessible label */
  caption: string
  view: View
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
}

/** On a phone a row is a card: its columns are those of the table, and the content below them is as wide as the card. */
const CARD = 'max-sm:col-span-full max-sm:grid max-sm:grid-cols-subgrid'

export function Table<Row>({ caption, view, columns: all, rows, keyOf }: TableProps<Row>) {
  const columns = all.filter(({ cell }) => cell)
  const classOf = ({ from, isNumber, isName }: Column<Row>) =>
    `${isName ? 'min-[90rem]:min-w-40' : ''} px-3 max-sm:px-0 sm:first:pl-4 sm:last:pr-4 ${from ? SHOWN[from] : ''} ${isNumber ? 'text-right whitespace-nowrap' : 'text-left'}`
  // Hide the head on a phone if it would name only one column: each row begins with its subject.
  const isLone = columns.filter(({ from }) => !from).length === 1
  return (
    <div className="overflow-clip rounded-lg border border-line bg-surface shadow-card">
      <table className="w-full border-collapse max-sm:grid max-sm:grid-cols-[minmax(0,1fr)_fit-content(55%)] max-sm:gap-x-4">
        <caption className="sr-only">{caption}</caption>
        <thead className={`sticky top-0 z-[1] bg-surface ${isLone ? 'max-sm:sr-only' : CARD}`}>
          <tr className={`shadow-[inset_0_-1px_0_var(--line)] max-sm:px-4 ${CARD}`}>
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
        <tbody className={`divide-y divide-line ${CARD}`}>
          {rows.map((row) => (
            <tr key={keyOf(row)} className={`transition-colors hover:bg-raised max-sm:px-4 max-sm:py-2.5 ${CARD}`}>
              {columns.map((column, index) =>
                index === 0 ? (
                  <td key={column.head} className={`py-2.5 align-top max-sm:contents ${classOf(column)}`}>
                    <div className={`min-w-0 max-sm:[&>time>span]:block ${isLone ? 'max-sm:col-span-full' : ''}`}>
                      {column.cell?.(row, view)}
                    </div>
                    <div className="max-sm:order-1 max-sm:col-span-full">
                      {column.beneath?.(row, view)}
                      <Repeated columns={columns} row={row} view={view} />
                    </div>
                  </td>
                ) : (
                  <td key={column.head} className={`py-2.5 align-top max-sm:py-0 ${classOf(column)}`}>
                    {column.cell?.(row, view)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Repeated<Row>({ columns, row, view }: Pick<TableProps<Row>, 'columns' | 'view'> & { row: Row }) {
  return columns.map(({ head, cell, from, isOmitted }) => {
    const value = from && !isOmitted && cell?.(row, view)
    if (!value || value === '–') return null
    return (
      <div
        key={head}
        className={`mt-0.5 text-xs max-sm:grid max-sm:grid-cols-[5.5rem_minmax(0,1fr)] max-sm:gap-x-2 ${REPEATED[from]}`}
      >
        <span className="text-faint">{head}</span> <span>{value}</span>
      </div>
    )
  })
}

/** The text in place of a table without rows. */
export function Empty({ title, children }: { title?: string | undefined; children?: ReactNode }) {
  return (
    <div className="space-y-2 rounded-lg border border-dashed border-edge px-6 py-10 text-center text-soft [&_a]:text-accent [&_a]:underline [&_a]:underline-offset-4 [&_:not(.hash)>code]:whitespace-nowrap [&_strong]:block [&_strong]:font-medium [&_strong]:text-ink">
      {title && <strong>{title}</strong>}
      {children && <div className="space-y-2">{children}</div>}
    </div>
  )
}

/** The text of a page while the database cannot be reached. */
export const Unreachable = () => (
  <Empty title="The database cannot be reached">
    Nothing is lost: the service decides open transfers once it is back. This page retries automatically.
  </Empty>
)

/** On the embedded network, the command that makes records to look at. */
export const DemoHint = ({ network, what }: { network: string; what: string }) =>
  network === 'local' && (
    <>
      {' '}
      {what}, run <code>npm run demo</code>.
    </>
  )
