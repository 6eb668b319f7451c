import { counted } from './figures.tsx'
import { addressOf, firstPage, type Query } from './query.ts'
import { PageLink } from './record-links.tsx'

interface TabsProps {
  label: string
  path: string
  /** the query parameter that selects a tab */
  name: string
  /** the value of each tab in the query, '' for all records, and its label */
  tabs: readonly (readonly [value: string, word: string])[]
  query: Query
  /** how many records each tab has, if known */
  counts?: ReadonlyMap<string, number> | undefined
}

const TAB =
  'group rounded-full px-3 py-1 whitespace-nowrap text-soft transition-colors hover:bg-raised hover:text-ink aria-[current]:bg-ink aria-[current]:text-page'

/** The tabs of a list. */
export function Tabs({ label, path, name, tabs, query, counts }: TabsProps) {
  const requested = query[name] ?? ''
  const selected = tabs.some(([value]) => value === requested) ? requested : ''
  return (
    <nav aria-label={label} className="mb-4 flex flex-wrap print:hidden gap-x-1 gap-y-0.5">
      {tabs.map(([value, word]) => (
        <PageLink
          key={value}
          href={addressOf(path, { ...firstPage(query), sort: '', [name]: value })}
          aria-current={value === selected ? 'true' : undefined}
          className={TAB}
        >
          {word}
          {counts && (
            <>
              {' '}
              <span className="ml-0.5 text-xs text-faint group-aria-[current]:text-page">
                {counted(counts.get(value) ?? 0)}
              </span>
            </>
          )}
        </PageLink>
      ))}
    </nav>
  )
}
