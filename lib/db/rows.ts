import type { AnyColumn, GetColumnData, Query } from 'drizzle-orm'
import type { Database } from './connection.ts'

type Row<Columns extends Record<string, AnyColumn>> = { [Name in keyof Columns]: GetColumnData<Columns[Name]> }

/**
 * A query for many rows, which selects exactly `columns`, in their order. For each cell anew, drizzle's own mapping finds
 * out how it is decoded, and for a thousand rows that takes longer than all else; here it is known of each column.
 * @param name under which each connection prepares the statement; without it the statement is planned each time
 */
export function rowsOf<Columns extends Record<string, AnyColumn>>(
  db: Database,
  columns: Columns,
  query: { toSQL(): Query },
  name?: string,
): { execute(values?: Record<string, unknown>): Promise<Row<Columns>[]> } {
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
  return db._.session.prepareQuery<{ execute: Row<Columns>[]; all: never; values: never }>(
    query.toSQL(),
    undefined,
    name,
    true,
    read,
  )
}
