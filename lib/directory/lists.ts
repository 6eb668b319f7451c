import { type AnyColumn, and, count, eq, getTableName, or, type Placeholder, type SQL, sql } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import { z } from 'zod'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import {
  afterPosition,
  cutPage,
  newestFirst,
  type PageRequest,
  type Position,
  pageQuery,
  rowsToRead,
} from '#lib/db/paging.ts'
import { preparedOnce } from '#lib/db/prepared.ts'
import { type Row, rowsOf } from '#lib/db/rows.ts'

/**
 * The query of a list: a page, and filters by status and by a text `q`. `texts` names the fields that `q` is sought in.
 */
export function listQuery<const Statuses extends readonly [string, ...string[]]>(statuses: Statuses, texts: string) {
  return pageQuery.extend({
    status: z
      .enum(statuses, `status must be one of ${statuses.join(', ')}`)
      .optional()
      .meta({ description: 'those in this status', 'x-extension': true }),
    q: z
      .string()
      .max(200, 'q must have at most 200 characters')
      .refine((text) => !/\p{Cc}/u.test(text) && text.isWellFormed(), 'q must not hold control characters')
      .optional()
      .meta({ description: `those with this in their ${texts}, in any case`, 'x-extension': true }),
  })
}

/** The condition that one of `columns` contains `text`, in upper or lower case. `text` has no wildcards. */
export function contains(text: string | undefined, columns: readonly AnyColumn[]): SQL | undefined {
  if (text === undefined) return undefined
  const pattern = `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
  return or(...columns.map((column) => sql`${column} ilike ${pattern}`))
}

type Listed = Record<string, PgColumn> & Record<'createdAt' | 'sequence', PgColumn>

/**
 * A list of an organisation's records, newest first.
 * @param isOwn the condition for the records of an organisation
 */
export function openList<Columns extends Listed>(
  table: PgTable,
  columns: Columns,
  isOwn: (organisation: string | Placeholder) => SQL | undefined,
) {
  const select = (db: Database, condition: SQL | undefined, rows: number | Placeholder) =>
    db
      .select(columns as Listed)
      .from(table)
      .where(condition)
      .orderBy(...newestFirst(columns))
      .limit(rows)
  const firstPage = preparedOnce((db) => {
    const query = select(db, isOwn(sql.placeholder('organisation')), sql.placeholder('rows'))
    return rowsOf(db, columns, query, `newest_${getTableName(table)}`)
  })

  /** The records for which `condition` holds, after `page.after`. Reads for different owners take turns. */
  const readMatching = (db: Database, owner: string | undefined, condition: SQL | undefined, page: PageRequest) =>
    rowsOf(db, columns, select(db, and(condition, afterPosition(columns, page)), rowsToRead(page))).execute(owner)

  /**
   * An organisation's records for which `filter` holds. The first page without a filter is asked for most: it is
   * prepared.
   */
  const readOwn = (db: Database, organisation: string, filter: SQL | undefined, page: PageRequest) =>
    filter || page.after
      ? readMatching(db, organisation, and(isOwn(organisation), filter), page)
      : firstPage(db).execute(organisation, { organisation, rows: rowsToRead(page) })

  /**
   * A page of `readOwn`, with the total if that is asked for. Without a filter the column `counter` holds the total.
   */
  async function readCounted(
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
    const [counted] = filter
      ? await db
          .select({ total: count() })
          .from(table)
          .where(and(isOwn(organisation), filter))
      : await db.select({ total: organisations[counter] }).from(organisations).where(eq(organisations.id, organisation))
    return { ...part, ...counted }
  }

  return { readMatching, readOwn, readCounted }
}
