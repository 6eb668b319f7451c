import type { Route } from 'next'
import type { ReactNode } from 'react'
import type { UnknownFilter } from '#lib/dashboard/filters.ts'
import { addressOf, firstPage, type Query } from './query.ts'
import { PageLink } from './record-links.tsx'

/** The filters that a link sets, with the words for their chips, in their order. */
const LABELS: Record<string, string> = {
  organisation: 'Organisation',
  contractor: 'Contractor',
  batch: 'Batch',
  account: 'Account',
  actor: 'By',
  record: 'Record',
  request: 'Request',
  reason: 'Reason',
}

const DAYS = ['from', 'to'] as const

export const FIELD = 'h-9 min-w-0 rounded-md border border-edge bg-surface px-3'

interface FilterFormProps {
  path: string
  query: Query
  /** the filters that the list has and that are in the query */
  filters: Readonly<Record<string, string>>
  unknown: readonly UnknownFilter[]
  /** the names of the records by which the list is filtered */
  names: Readonly<Record<string, string | undefined>>
  /** the parameter that the tabs set */
  tab: string | undefined
  children?: ReactNode
}

/** The form that filters a list by days and by `children`. It keeps the filters that a link has set, and needs no JavaScript. */
export function FilterForm({ path, query, filters, unknown, names, tab, children }: FilterFormProps) {
  const isTime = (name: 'from' | 'to') => filters[name]?.includes('T') === true
  const chips = Object.entries(LABELS).filter(([name]) => filters[name])
  const times = DAYS.filter(isTime).map((name) => [name, name === 'from' ? 'From' : 'Until'] as const)
  const preserved = [...[...chips, ...times].map(([name]) => name), 'sort', ...(tab === undefined ? [] : [tab])]
  const isFiltered = Object.entries(filters).some(([name, value]) => value !== '' && !preserved.includes(name))
  return (
    <div className="print:hidden">
      {/* On a phone the list begins with its rows. The filters are shown by a button, without JavaScript. */}
      <input id="show-filters" type="checkbox" defaultChecked={isFiltered} className="peer sr-only sm:hidden" />
      <label
        htmlFor="show-filters"
        className="mb-3 inline-flex h-9 items-center rounded-md border border-edge bg-surface px-3 peer-checked:border-accent peer-focus-visible:outline-2 peer-focus-visible:outline-accent sm:hidden"
      >
        Filters
      </label>
      <form
        action={path}
        method="get"
        className="mb-3 flex flex-wrap items-center gap-2 max-sm:hidden max-sm:peer-checked:flex"
        aria-label="Filters"
      >
        {preserved.map((name) => filters[name] && <input key={name} type="hidden" name={name} value={filters[name]} />)}
        {children}
        {DAYS.map((name) =>
          isTime(name) ? null : (
            <Day key={name} name={name} label={name === 'from' ? 'From' : 'To'} value={filters[name]} />
          ),
        )}
        <button
          type="submit"
          className="h-9 rounded-md border border-edge bg-surface px-3 hover:border-accent hover:text-accent"
        >
          Filter
        </button>
        {isFiltered && (
          <PageLink
            href={addressOf(path, Object.fromEntries(preserved.map((name) => [name, filters[name] ?? ''])))}
            name="Clear"
            className="px-1 text-soft underline-offset-4 hover:underline"
          />
        )}
      </form>
      {chips.length + times.length > 0 && (
        <ul aria-label="Filters" className="mb-3 flex flex-wrap gap-2">
          {[...chips, ...times].map(([name, label]) => (
            <li key={name}>
              <Chip
                href={addressOf(path, { ...firstPage(query), [name]: '' })}
                label={label}
                value={names[name] ?? filters[name] ?? ''}
              />
            </li>
          ))}
        </ul>
      )}
      {unknown.length > 0 && <Unknown path={path} query={query} unknown={unknown} />}
    </div>
  )
}

const CHIP =
  'inline-flex max-w-full items-baseline gap-2 rounded-full bg-accent-wash px-3 py-1 text-[0.8125rem] text-accent-strong hover:underline'

const Chip = ({ href, label, value }: { href: Route; label: string; value: string }) => (
  <PageLink href={href} aria-label={`Remove the filter ${label}: ${value}`} className={CHIP}>
    <span className="min-w-0 [overflow-wrap:anywhere]">
      {label}: <span className="font-medium">{value}</span>
    </span>
    <span aria-hidden="true">×</span>
  </PageLink>
)

function Day({ name, label, value = '' }: { name: string; label: string; value?: string | undefined }) {
  return (
    <label className="flex min-w-0 items-center gap-1.5 text-soft max-sm:grow">
      {label}
      <input
        key={value}
        type="date"
        name={name}
        aria-label={`${label} day (UTC)`}
        defaultValue={value}
        className={`${FIELD} text-ink max-sm:grow`}
      />
    </label>
  )
}

/** The filters that the list doesn't have, which would otherwise seem to have matched everything. */
function Unknown({ path, query, unknown }: Pick<FilterFormProps, 'path' | 'query' | 'unknown'>) {
  const others = Object.fromEntries(unknown.map(({ name }) => [name, '']))
  return (
    <p role="alert" className="mb-3 rounded-md bg-bad-wash px-3 py-2 text-[0.8125rem] [overflow-wrap:anywhere]">
      Ignored, since this list has no such filter:{' '}
      {unknown.map(({ name, value }) => `${name}=${value.slice(0, 80)}`).join(', ')}{' '}
      <PageLink
        href={addressOf(path, { ...query, ...others })}
        name="Remove"
        className="underline underline-offset-4"
      />
    </p>
  )
}
