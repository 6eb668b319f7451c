import type { List } from '#lib/dashboard/list.ts'
import { addressOf, firstPage, type Query } from './query.ts'
import { PageLink } from './record-links.tsx'

interface PagerProps {
  path: string
  query: Query
  list: Pick<List<unknown>, 'previous' | 'next'>
}

const LINK = 'inline-block rounded-md border border-edge bg-surface px-2.5 py-1.5 hover:border-accent hover:text-accent'

/** Links to the first page, and to the previous and the next one. */
export function Pager({ path, query, list: { previous, next } }: PagerProps) {
  const links: { name: string; to: Query; rel?: string }[] = []
  if (previous !== undefined)
    links.push({ name: 'First', to: {} }, { name: 'Previous', to: { before: previous }, rel: 'prev' })
  if (next !== undefined) links.push({ name: 'Next', to: { after: next }, rel: 'next' })
  if (links.length === 0) return null
  return (
    <nav aria-label="Pages of the list" className="mt-4 print:hidden">
      <ul className="flex flex-wrap items-center justify-end gap-1">
        {links.map(({ to, ...link }) => (
          <li key={link.name}>
            <PageLink href={addressOf(path, { ...firstPage(query), ...to })} {...link} className={LINK} />
          </li>
        ))}
      </ul>
    </nav>
  )
}
