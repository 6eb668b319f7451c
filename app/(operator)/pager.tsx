import Link from 'next/link'
import type { List } from '#lib/dashboard/list.ts'
import { addressOf, firstPage, type Query } from './query.ts'

interface PagerProps {
  path: string
  query: Query
  list: Pick<List<unknown>, 'previous' | 'next'>
}

/** Links to the first page, and to the previous and the next one. */
export function Pager({ path, query, list: { previous, next } }: PagerProps) {
  if (previous === undefined && next === undefined) return null
  const to = (place: Query) => addressOf(path, { ...firstPage(query), ...place })
  return (
    <nav aria-label="Pages of the list" className="mt-4 print:hidden">
      <ul className="flex flex-wrap items-center justify-end gap-1">
        {previous !== undefined && (
          <>
            <li>
              <Link href={to({})} prefetch={false} className={LINK}>
                First
              </Link>
            </li>
            <li>
              <Link href={to({ before: previous })} prefetch={false} rel="prev" className={LINK}>
                Previous
              </Link>
            </li>
          </>
        )}
        {next !== undefined && (
          <li>
            <Link href={to({ after: next })} prefetch={false} rel="next" className={LINK}>
              Next
            </Link>
          </li>
        )}
      </ul>
    </nav>
  )
}

const LINK = 'inline-block rounded-md border border-edge bg-surface px-2.5 py-1.5 hover:border-accent hover:text-accent'
