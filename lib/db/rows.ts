import type { AnyColumn, GetColumnData, Query } from 'drizzle-orm'
import { inLine, type Line, openLine } from '#lib/http/fairness.ts'
import type { Database } from './connection.ts'

export type Row<Columns extends Record<string, AnyColumn>> = { [Name in keyof Columns]: GetColumnData<Columns[Name]> }

/**
 * A query for many rows, which selects exactly `columns`, in their order. drizzle's own mapping works out the decoder of
 * every single cell, which for a thousand rows takes longer than all else; here each column has its decoder. Only few such
 * queries run at once and the others wait, so none may be part of a transaction, whose connection would be held meanwhile.
 * `execute` takes the owner whose rows they are: owners take turns.
 * @param name under which each connection prepares the statement; without it the statement is planned each time
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
  const prepared = db._.session.prepareQuery<Prepared>(query.toSQL(), undefined, name, true, read)
  return { execute: (owner, values) => inLine(listsLine(), owner, () => prepared.execute(values)) }
}

/**
 * The maximum number of such queries at once. Each uses a connection, and decoding its rows blocks the event loop for
 * milliseconds. Both must stay available to small requests, however many lists are requested.
 */
const MOST_AT_ONCE = 3

// A build may bundle routes separately, so they share state through globalThis.
const shared = globalThis as { payrollLists?: Line }

function listsLine(): Line {
  shared.payrollLists ??= openLine({ atOnce: MOST_AT_ONCE })
  return shared.payrollLists
}
