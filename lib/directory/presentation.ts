import { getTableColumns, type Table } from 'drizzle-orm'
import type { z } from 'zod'

type Columns<Of extends Table> = Of['_']['columns']

/** The columns of a table that a response has under the same name. */
export function columnsOf<Of extends Table, Shape extends z.ZodObject>(
  table: Of,
  { shape }: Shape,
): Pick<Columns<Of>, keyof Columns<Of> & keyof Shape['shape']> {
  const columns = Object.entries(getTableColumns(table)).filter(([name]) => name in shape)
  return Object.fromEntries(columns) as Pick<Columns<Of>, keyof Columns<Of> & keyof Shape['shape']>
}

/** What a row must have for a response: a time for a string, and null for a field that the response leaves out. */
type RowFor<Response> = {
  [Field in keyof Response]-?:
    | Exclude<Response[Field], undefined>
    | (string extends Response[Field] ? Date : never)
    | (undefined extends Response[Field] ? null | Date : never)
}

/** The response of a row: the fields of the shape, times in ISO 8601, nothing that is null. */
export const presentAs =
  <Shape extends z.ZodObject>({ shape }: Shape) =>
  (row: RowFor<z.output<Shape>>): z.output<Shape> => {
    const fields = Object.keys(shape).flatMap((name) => {
      const value: unknown = row[name as keyof typeof row]
      return value === null ? [] : [[name, value instanceof Date ? value.toISOString() : value]]
    })
    return Object.fromEntries(fields) as z.output<Shape>
  }
