import type { Route } from 'next'
import Link from 'next/link'
import { cursorOf, type PageRequest, type Position, pageRequest } from '#lib/http/paging.ts'
import { Refusal } from '#lib/http/refusal.ts'

/** How many records a page lists. */
const LIMIT = 50

/** The query of a page; of a repeated parameter the first counts. */
export type Query = Record<string, string>
export async function readSearch(given: Promise<Record<string, string | string[] | undefined>>): Promise<Query> {
  const entries = Object.entries(await given)
  return Object.fromEntries(entries.map(([name, value]) => [name, (Array.isArray(value) ? value[0] : value) ?? '']))
}

/** The part of a list that the query asks for; a cursor that is none of ours leads to the beginning. */
export function pageOf(query: Query, limit = LIMIT): PageRequest {
  try {
    return { ...pageRequest({ cursor: query.cursor || undefined }), limit }
  } catch (error) {
    if (error instanceof Refusal) return { limit, after: undefined }
    throw error
  }
}

/** The address of `path` with what of `query` is not empty. */
export function addressOf(path: string, query: Query): Route {
  const filled = Object.entries(query).filter(([, value]) => value !== '')
  return (filled.length === 0 ? path : `${path}?${new URLSearchParams(filled)}`) as Route
}

const LINK = 'rounded-md border border-edge bg-surface px-3 py-1.5 hover:border-accent hover:text-accent'

interface PagerProps {
  path: string
  query: Query
  next: Position | undefined
  words?: { first: string; further: string }
}

/** The ways to the beginning of a list and to what follows, where there are any. */
export function Pager({ path, query, next, words = { first: 'Newest', further: 'Older' } }: PagerProps) {
  if (!next && !query.cursor) return null
  return (
    <nav aria-label="Parts of the list" className="mt-4 flex justify-between gap-3">
      {query.cursor ? (
        <Link href={addressOf(path, { ...query, cursor: '' })} prefetch={false} className={LINK}>
          {words.first}
        </Link>
      ) : (
        <span />
      )}
      {next && (
        <Link href={addressOf(path, { ...query, cursor: cursorOf(next) })} prefetch={false} className={LINK}>
          {words.further}
        </Link>
      )}
    </nav>
  )
}

interface TabsProps {
  label: string
  path: string
  /** the parameter of the query that chooses */
  name: string
  chosen: string
  /** values and words; the value '' stands for none */
  tabs: readonly (readonly [value: string, word: string])[]
  /** what else of the query stays */
  query?: Query
}

/** Parts of a list, one of which is shown. */
export function Tabs({ label, path, name, chosen, tabs, query = {} }: TabsProps) {
  return (
    <nav aria-label={label} className="-mx-1 mb-4 flex flex-wrap gap-x-1 gap-y-0.5">
      {tabs.map(([value, word]) => (
        <Link
          key={value}
          href={addressOf(path, { ...query, [name]: value })}
          prefetch={false}
          aria-current={value === chosen ? 'true' : undefined}
          className="rounded-full px-3 py-1 whitespace-nowrap text-soft transition-colors hover:bg-raised hover:text-ink aria-[current]:bg-ink aria-[current]:text-page"
        >
          {word}
        </Link>
      ))}
    </nav>
  )
}
