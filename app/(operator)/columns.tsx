import type { ReactNode } from 'react'
import type { CsvValue } from '#lib/text/csv.ts'
import { Moment } from './figures.tsx'
import { RecordLink, type RecordType } from './record-links.tsx'
import { Status, type StatusName, statusWord } from './status.tsx'
import type { Column } from './table.tsx'

type Layout = Pick<Column<unknown>, 'from' | 'isOmitted' | 'isName'>

interface RecordName {
  id: string
  name?: string | null
}

/** A column that only the file has. */
export const fileColumn = <Row,>(head: string, value: (row: Row, now: Date) => CsvValue) => ({ head, value })

/** The link to the page of a record. */
export const linkColumn = <Row,>(head: string, type: RecordType, of: (row: Row) => RecordName): Column<Row> => ({
  head,
  cell: (row) => (
    <span className="font-medium">
      <RecordLink type={type} id={of(row).id} name={of(row).name ?? null} />
    </span>
  ),
})

/** A time, which the file has in UTC. */
export const timeColumn = <Row,>(
  head: string,
  at: (row: Row) => Date | null,
  { none = '–', isShort, ...layout }: Layout & { none?: string; isShort?: boolean } = {},
): Column<Row> => ({
  ...layout,
  head,
  cell: (row, { now }): ReactNode => {
    const time = at(row)
    return time ? <Moment at={time} now={now} isShort={isShort} /> : none
  },
  fileHead: `${head} (UTC)`,
  value: at,
})

/** The organisation of a record, if it has one. */
export const organisationColumn = (
  layout: Layout,
): Column<{ organisation: string | null; organisationName: string | null }> => ({
  ...layout,
  head: 'Organisation',
  cell: ({ organisation: id, organisationName: name }) =>
    id === null || name === null ? '–' : <RecordLink type="organisation" id={id} name={name} />,
  value: ({ organisationName }) => organisationName,
})

/** The status of a record, which may depend on the time. */
export const statusColumn = <Row,>(is: (row: Row, now: Date) => StatusName): Column<Row> => ({
  head: 'Status',
  cell: (row, { now }) => <Status is={is(row, now)} />,
  value: (row, now) => statusWord(is(row, now)),
})
