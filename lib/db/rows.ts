import { type AnyColumn, type GetColumnData, is, type Query, SQL } from 'drizzle-orm'
import { perProcess } from '#lib/observability/per-process.ts'
import { inLine, openLine } from '#lib/turns/line.ts'
import type { Database } from './connection.ts'
import { readOnly } from './read-only.ts'

/** Columns by name. An expression is returned as the driver decodes it. */
export type Columns = Record<string, AnyColumn | SQL>

export type Row<Selected extends Columns> = {
  [Name in keyof Selected]: Selected[Name] extends AnyColumn
    ? GetColumnData<Selected[Name]>
    : Selected[Name] extends SQL<infer Value>
      ? Value
      : never
}

/** Decodes the rows of a query with exactly these columns, in their order. drizzle looks up the decoder of each cell. */
function decoderOf<Selected extends Columns>(columns: Selected): (rows: unknown[][]) => Row<Selected>[] {
  const entries = Object.entries(columns)
  const decode = (cells: readonly unknown[]) => {
    const row: Record<string, unknown> = {}
    for (const [index, [field, column]] of entries.entries()) {
      const cell = cells[index]
      row[field] = cell === null || is(column, SQL) ? cell : column.mapFromDriverValue(cell)
    }
    return row as Row<Selected>
  }
  return (rows) => rows.map(decode)
}

/**
 * A query for many rows, which selects exactly `columns`, in their order. Only a few such queries run concurrently and the
 * others wait, so none may be part of a transaction, which would occupy a connection in the meantime. `execute` takes the
 * owner of the rows, and owners take turns.
 */
export function rowsOf<Selected extends Columns>(
  db: Database,
  columns: Selected,
  query: { toSQL(): Query },
): { execute(owner: string | undefined, values?: Record<string, unknown>): Promise<Row<Selected>[]> } {
  type Prepared = { execute: Row<Selected>[]; all: never; values: never }
  const decode = decoderOf(columns)
  const prepared = readOnly(db)._.session.prepareQuery<Prepared>(query.toSQL(), undefined, undefined, true, decode)
  return { execute: (owner, values) => inLine(listsLine(), owner, () => prepared.execute(values)) }
}

/**
 * The maximum number of concurrent queries. Each uses a connection, and decoding its rows blocks the event loop for
 * milliseconds. Small requests need both, however many lists are requested.
 */
const MAX_AT_ONCE = 3

const listsLine = () => perProcess('lists', () => openLine({ atOnce: MAX_AT_ONCE }))
