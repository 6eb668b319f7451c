import { resource } from '#lib/api/resource.ts'
import { csvStream } from '#lib/dashboard/csv.ts'
import { type FilterChecks, type Filters, readFilters, type UnknownFilter } from '#lib/dashboard/filters.ts'
import type { Database } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import type { CsvValue } from '#lib/text/csv.ts'
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
  read: (db: Database, filters: Filters<Checks>, service: Pick<Service, 'settings'>, now: Date) => AsyncIterable<Row[]>
  columns: readonly [head: string, value: (row: Row, now: Date) => CsvValue][]
}

/** The address of a list's file for the query of its page. */
export const fileOf = ({ name }: { name: string }) => `/${name}.csv`

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
        const parts = list.read(readOnly(await service.database()), filters, service, now)
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
  { columns }: { columns: readonly [head: string, value: (row: Row, now: Date) => CsvValue][] },
  parts: AsyncIterable<Row[]>,
  now: Date,
) {
  for await (const rows of parts) yield rows.map((row) => columns.map(([, value]) => value(row, now)))
}
