import { resource } from '#lib/api/resource.ts'
import { csvStream } from '#lib/dashboard/csv.ts'
import { type FilterChecks, type Filters, readFilters, type UnknownFilter } from '#lib/dashboard/filters.ts'
import { readFile } from '#lib/dashboard/list.ts'
import type { Database } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import type { CsvValue } from '#lib/text/csv.ts'
import { type ListDisplay, listContext } from './list-display.ts'
import { queryOf } from './query.ts'
import { readOperator } from './require-operator.ts'

/**
 * A list of the dashboard: what its page, its CSV file and the links between them share. Both read a query with
 * `checks`, so a file contains exactly the records that its page counts.
 */
export interface ListFile<Checks extends FilterChecks, Row> {
  /** of the file, without the day and the extension */
  name: string
  checks: Checks
  /** all records that match, in chunks */
  read: (
    db: Database,
    filters: Filters<Checks>,
    service: Service,
    now: Date,
  ) => AsyncIterable<Row[]> | Promise<AsyncIterable<Row[]>>
  columns: readonly (readonly [head: string, value: (row: Row, now: Date) => CsvValue])[]
}

/** The handlers of a list's CSV file, for the operator only. */
export const csvOf = <Checks extends FilterChecks, Row, Shown extends Row>({
  name,
  records,
  columns,
}: ListDisplay<Checks, Row, Shown>) =>
  csvFile<Checks, Row>({
    name,
    checks: records.filters,
    read: (db, filters, service) => readFile(records, listContext(db, service), filters),
    columns: columns.flatMap(({ head, fileHead = head, value }) => (value ? [[fileHead, value] as const] : [])),
  })

const wordsOf = ({ name, value }: UnknownFilter) => `${name}=${value.slice(0, 40)}`

/** The handlers of a list's CSV file, for the operator only. */
export function csvFile<Checks extends FilterChecks, Row>(list: ListFile<Checks, Row>) {
  return resource(
    {
      GET: async (request) => {
        const service = await readOperator()
        if (!service) throw new Refusal('unauthenticated')
        const now = service.now()
        const { filters, unknown } = readFilters(list.checks, queryOf(new URL(request.url).searchParams))
        // A file of all records must not look like a filtered one.
        if (unknown.length > 0)
          throw new Refusal('filter-unknown', `unknown filter: ${unknown.map(wordsOf).join(', ')}`)
        const parts = await list.read(readOnly(await service.database()), filters, service, now)
        const head = list.columns.map(([name]) => name)
        return new Response(csvStream(head, records(list, parts, now)), {
          headers: {
            'Content-Type': 'text/csv; charset=utf-8',
            'Content-Disposition': `attachment; filename="${list.name}-${now.toISOString().slice(0, 10)}.csv"`,
          },
        })
      },
    },
    { readers: 'ourselves' },
  )
}

async function* records<Row>(
  { columns }: { columns: readonly (readonly [head: string, value: (row: Row, now: Date) => CsvValue])[] },
  parts: AsyncIterable<Row[]>,
  now: Date,
) {
  for await (const rows of parts) yield rows.map((row) => columns.map(([, value]) => value(row, now)))
}
