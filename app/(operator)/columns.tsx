import type { ReactNode } from 'react'
import type { CsvValue } from '#lib/text/csv.ts'
import { Moment } from './figures.tsx'
import { OrganisationLink, type RecordLinkProps } from './record-links.tsx'
import { Status, statusWord } from './status.tsx'
import type { Column } from './table.tsx'

type Layout = Pick<Column<unknown>, 'from' | 'isRepeated' | 'isName'>

/** A column that only the file has. */
export const fileColumn = <Row,>(head: string, value: (row: Row, now: Date) => CsvValue) => ({ head, value })

/** The link to the page of a record. */
export const linkColumn = <Row,>(
  head: string,
  RecordLink: (of: RecordLinkProps) => ReactNode,
  of: (row: Row) => RecordLinkProps,
): Pick<Column<Row>, 'head' | 'cell'> => ({
  head,
  cell: (row) => (
    <span className="font-medium">
      <RecordLink id={of(row).id} name={of(row).name} />
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
  cell: ({ organisation, organisationName }) =>
    organisation === null || organisationName === null ? (
      '–'
    ) : (
      <OrganisationLink id={organisation} name={organisationName} />
    ),
  value: ({ organisationName }) => organisationName,
})

/** The status of a record, which may depend on the time. */
export const statusColumn = <Row, Kind extends Parameters<typeof statusWord>[0]>(
  of: Kind,
  is: (row: Row, now: Date) => Parameters<typeof statusWord<Kind>>[1],
): Column<Row> => ({
  head: 'Status',
  cell: (row, { now }) => <Status of={of} is={is(row, now)} />,
  value: (row, now) => statusWord(of, is(row, now)),
})
