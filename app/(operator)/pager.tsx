import Link from 'next/link'
import { addressOf, type Query } from './query.ts'

interface PagerProps {
  path: string
  query: Query
  page: number
  pages: number
}

/** Links to the first page, the last page, and the pages around the current one. */
export function Pager({ path, query, page, pages }: PagerProps) {
  if (pages === 1) return null
  const to = (number: number) => addressOf(path, { ...query, page: number === 1 ? '' : String(number) })
  const near = Array.from({ length: pages }, (_, index) => index + 1).filter(
    (number) => number === 1 || number === pages || Math.abs(number - page) <= 1,
  )
  return (
    <nav aria-label="Pages of the list" className="mt-4 flex print:hidden flex-wrap items-center justify-between gap-3">
      <p className="text-[0.8125rem] text-soft">
        Page {page} of {pages}
      </p>
      <ul className="flex flex-wrap items-center gap-1">
        {page > 1 && (
          <li>
            <Link href={to(page - 1)} prefetch={false} rel="prev" className={LINK}>
              Newer
            </Link>
          </li>
        )}
        {near.map((number, index) => (
          <li key={number} className="max-sm:hidden">
            {number - (near[index - 1] ?? 0) > 1 && <span className="px-1 text-faint">…</span>}
            <Link
              href={to(number)}
              prefetch={false}
              aria-label={`Page ${number}`}
              aria-current={number === page ? 'page' : undefined}
              className={`${LINK} inline-block aria-[current]:border-accent aria-[current]:font-medium aria-[current]:text-accent`}
            >
              {number}
            </Link>
          </li>
        ))}
        {page < pages && (
          <li>
            <Link href={to(page + 1)} prefetch={false} rel="next" className={LINK}>
              Older
            </Link>
          </li>
        )}
      </ul>
    </nav>
  )
}

const LINK = 'rounded-md border border-edge bg-surface px-2.5 py-1.5 hover:border-accent hover:text-accent'
