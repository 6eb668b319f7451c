import { and, eq, type GetColumnData, type SQL } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import { z } from 'zod'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo, MAX_COUNTED } from '#lib/db/count.ts'
import { byTime } from '#lib/db/keyset.ts'
import {
  afterPosition,
  cutPage,
  newestFirst,
  type PageRequest,
  type Position,
  pageQuery,
  rowsToRead,
} from '#lib/db/paging.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { readRows } from '#lib/db/rows.ts'
import { externalIdField } from '#lib/text/external-id.ts'

/** The filter of a list by an external id. */
export const externalIdFilter = externalIdField
  .optional()
  .meta({ description: 'only the record with this id of yours', 'x-extension': true })

/** The query of a list: page, status and a text `q`. `fields` names the fields that `q` is matched against. */
export function listQuery<const Statuses extends readonly [string, ...string[]]>(statuses: Statuses, fields: string) {
  return pageQuery.extend({
    status: z
      .enum(statuses, `must be one of ${statuses.join(', ')}`)
      .optional()
      .meta({ description: 'only records with this status', 'x-extension': true }),
    q: z
      .string()
      .max(200, 'must have at most 200 characters')
      .refine((text) => !/\p{Cc}/u.test(text) && text.isWellFormed(), 'must not contain control characters')
      .optional()
      .meta({ description: `only records whose ${fields} contains this text, in any case`, 'x-extension': true }),
    externalId: externalIdFilter,
  })
}

type ListColumns = Record<string, PgColumn> & Record<'createdAt' | 'sequence', PgColumn>

type Row<Columns extends ListColumns> = { [Name in keyof Columns]: GetColumnData<Columns[Name]> }

/**
 * Lists an organisation's records, newest first.
 * @param isOwn the condition for the records of an organisation
 */
export function defineList<Columns extends ListColumns>(
  table: PgTable,
  columns: Columns,
  isOwn: (organisation: string) => SQL | undefined,
) {
  /** Reads the records that match `condition`, after `page.after`. */
  const readWhere = (db: Database, owner: string | undefined, condition: SQL | undefined, page: PageRequest) =>
    readRows(db, owner, async (reader) => {
      const rows = await reader
        .select(columns as ListColumns)
        .from(table)
        .where(and(condition, afterPosition(columns, page)))
        .orderBy(...newestFirst(columns))
        .limit(rowsToRead(page))
      return rows as Row<Columns>[]
    })

  /** Reads an organisation's records. */
  const readOwn = (db: Database, organisation: string, filter: SQL | undefined, page: PageRequest) =>
    readWhere(db, organisation, and(isOwn(organisation), filter), page)

  /**
   * A page of `readOwn`, with the total if the request asks for it and no more than MAX_COUNTED records match a filter.
   * `counter` is the column with the unfiltered total.
   */
  async function readPage(
    db: Database,
    organisation: string,
    {
      filter,
      page,
      counter,
    }: { filter: SQL | undefined; page: PageRequest; counter: 'batchCount' | 'contractorCount' },
  ) {
    const rows = (await readOwn(db, organisation, filter, page)) as (Row<Columns> & Position)[]
    const part = cutPage(rows, page)
    if (!page.counts) return part
    if (!page.after && !part.next) return { ...part, total: part.items.length }
    const reader = readOnly(db)
    if (filter) {
      const counts = await countUpTo(reader, table, byTime(columns), { total: and(isOwn(organisation), filter) })
      const total = counts.get('total') ?? 0
      return total > MAX_COUNTED ? part : { ...part, total }
    }
    const [all] = await reader
      .select({ total: organisations[counter] })
      .from(organisations)
      .where(eq(organisations.id, organisation))
    return { ...part, ...all }
  }

  return { readWhere, readOwn, readPage }
}
