import { resource } from '#lib/api/resource.ts'
import { csvStream } from '#lib/dashboard/csv.ts'
import { type FilterChecks, readFilters, type UnknownFilter } from '#lib/dashboard/filters.ts'
import { readWholeList } from '#lib/dashboard/list.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { fileNameOf, type ListDisplay, listContext } from './list-display.ts'
import { queryOf } from './query.ts'
import { readOperator } from './require-operator.ts'
import type { Column } from './table.tsx'

const wordsOf = ({ name, value }: UnknownFilter) => `${name}=${value.slice(0, 40)}`

/** The handlers of a list's CSV file, for the operator only. */
export function csvFile<Checks extends FilterChecks, Row, Shown extends Row>(list: ListDisplay<Checks, Row, Shown>) {
  const { records, columns } = list
  return resource(
    {
      GET: async (request) => {
        const service = await readOperator()
        if (!service) throw new Refusal('unauthenticated')
        const { filters, unknown } = readFilters(records.filters, queryOf(new URL(request.url).searchParams))
        // A file of all records must not look like a filtered one.
        if (unknown.length > 0)
          throw new Refusal('filter-unknown', `unknown filter: ${unknown.map(wordsOf).join(', ')}`)
        const context = listContext(readOnly(await service.database()), service)
        const file = write(columns, await readWholeList(records, context, filters), context.now)
        return new Response(csvStream(file.head, file.parts), {
          headers: {
            'Content-Type': 'text/csv; charset=utf-8',
            'Content-Disposition': `attachment; filename="${fileNameOf(list)}-${context.now.toISOString().slice(0, 10)}.csv"`,
          },
        })
      },
    },
    { readers: 'ourselves' },
  )
}

/** The heads and the records of a file: those of the columns that have a value. */
function write<Shown, Row>(columns: readonly Column<Shown, Row>[], parts: AsyncIterable<Row[]>, now: Date) {
  const written = columns.flatMap(({ head, fileHead = head, value }) => (value ? [{ head: fileHead, value }] : []))
  async function* records() {
    for await (const rows of parts) yield rows.map((row) => written.map(({ value }) => value(row, now)))
  }
  return { head: written.map(({ head }) => head), parts: records() }
}
