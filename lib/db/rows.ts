import type { AnyColumn, GetColumnData, Query } from 'drizzle-orm'
import { inLine, openLine } from '#lib/http/fairness.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import type { Database } from './connection.ts'
import { readOnly } from './read-only.ts'

export type Row<Columns extends Record<string, AnyColumn>> = { [Name in keyof Columns]: GetColumnData<Columns[Name]> }

/**
 * A query for many rows, which selects exactly `columns`, in their order. drizzle's mapping determines the decoder of
 * every cell, which dominates the cost of a thousand rows; here the decoder is determined once per column. Only a few
 * such queries run concurrently and the others wait, so none may be part of a transaction, which would occupy a
 * connection in the meantime. `execute` takes the owner of the rows, and owners take turns.
 * @param name the name under which each connection prepares the statement; without it the statement is planned each
 *   time
 */
export function rowsOf<Columns extends Record<string, AnyColumn>>(
  db: Database,
  columns: Columns,
  query: { toSQL(): Query },
  name?: string,
): { execute(owner: string | undefined, values?: Record<string, unknown>): Promise<Row<Columns>[]> } {
  const entries = Object.entries(columns)
  const decode = (cells: readonly unknown[]) => {
    const row: Record<string, unknown> = {}
    for (const [index, [field, column]] of entries.entries()) {
      const cell = cells[index]
      row[field] = cell === null ? null : column.mapFromDriverValue(cell)
    }
    return row as Row<Columns>
  }
  const read = (rows: unknown[][]) => rows.map(decode)
  type Prepared = { execute: Row<Columns>[]; all: never; values: never }
  const prepared = readOnly(db)._.session.prepareQuery<Prepared>(query.toSQL(), undefined, name, true, read)
  return { execute: (owner, values) => inLine(listsLine(), owner, () => prepared.execute(values)) }
}

/**
 * The maximum number of concurrent queries. Each uses a connection, and decoding its rows blocks the event loop for
 * milliseconds. Small requests need both, however many lists are requested.
 */
const MOST_AT_ONCE = 3

const listsLine = () => perProcess('lists', () => openLine({ atOnce: MOST_AT_ONCE }))
