import { type AnyColumn, or, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import { pageQuery } from '#lib/http/paging.ts'

/** The query of a list whose records have one of `statuses`. `q` is a part of a text that a record has. */
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

/** The condition that one of `columns` has `text` in it, in any case. Nothing in it is a wildcard. */
export function contains(text: string | undefined, columns: readonly AnyColumn[]): SQL | undefined {
  if (text === undefined) return undefined
  const pattern = `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
  return or(...columns.map((column) => sql`${column} ilike ${pattern}`))
}
