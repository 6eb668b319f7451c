import { resource } from '#lib/api/resource.ts'
import { csvStream } from '#lib/dashboard/csv.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import type { CsvValue } from '#lib/text/csv.ts'
import { type Query, queryOf } from './query.ts'
import { readOperator } from './require-operator.ts'

/**
 * A list of the dashboard: what its page, its CSV file and the links between them share. Both parse a query with
 * `filters`, so a file contains exactly the records that its page counts.
 */
export interface ListFile<Filters, Row> {
  /** of the file, without the day and the extension */
  name: string
  filters: (query: Query, service: Service) => Filters
  /** all records that match, in parts */
  read: (db: Database, filters: Filters, now: Date) => AsyncIterable<Row[]>
  columns: readonly [head: string, value: (row: Row, now: Date) => CsvValue][]
}

/** The address of a list's file for the query of its page. */
export const fileOf = ({ name }: Pick<ListFile<never, never>, 'name'>) => `/${name}.csv`

/** The handlers of a list's CSV file, for the operator only. */
export function csvFile<Filters, Row>(list: ListFile<Filters, Row>) {
  return resource(
    {
      GET: async (request) => {
        const service = await readOperator()
        if (!service) throw new Refusal('unauthenticated')
        const now = service.now()
        const filters = list.filters(queryOf(new URL(request.url).searchParams), service)
        const parts = list.read(await service.database(), filters, now)
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
  { columns }: Pick<ListFile<never, Row>, 'columns'>,
  parts: AsyncIterable<Row[]>,
  now: Date,
) {
  for await (const rows of parts) yield rows.map((row) => columns.map(([, value]) => value(row, now)))
}
