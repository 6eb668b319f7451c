import Link from 'next/link'
import type { ReactNode } from 'react'
import { addressOf, type Query } from './query.ts'
import { SearchKey } from './search-key.tsx'

/** An active filter, with its display name. */
export interface Filter {
  /** the parameter of the query */
  name: string
  label: string
  value: string
}

/** The filter for one organisation, if it is active. */
export function organisationFilter({ organisation = '' }: Query, name: string | undefined): Filter[] {
  return organisation === '' ? [] : [{ name: 'organisation', label: 'Organisation', value: name ?? organisation }]
}

interface SearchFormProps {
  path: string
  query: Query
  searches: string
  /** the parameter that the tabs set, which a search keeps */
  tab: string | undefined
  filters: readonly Filter[]
  children?: ReactNode
}

export const FIELD = 'h-9 min-w-0 rounded-md border border-edge bg-surface px-3 placeholder:text-faint'

/** Searches a list within its filters, with or without JavaScript. */
export function SearchForm({ path, query, searches, tab, filters, children }: SearchFormProps) {
  const preserved = [...filters.map(({ name }) => name), ...(tab === undefined ? [] : [tab])]
  const q = query.q ?? ''
  const isAsked = Object.entries(query).some(
    ([name, value]) => name !== 'page' && value !== '' && !preserved.includes(name),
  )
  return (
    <search className="print:hidden">
      <form action={path} method="get" className="mb-3 flex flex-wrap items-center gap-2">
        {preserved.map((name) => query[name] && <input key={name} type="hidden" name={name} value={query[name]} />)}
        <label htmlFor="q" className="sr-only">
          Search
        </label>
        <span className="relative min-w-40 flex-1 basis-40 sm:max-w-md sm:basis-64">
          <input
            id="q"
            name="q"
            type="search"
            key={q}
            defaultValue={q}
            placeholder={`${searches.charAt(0).toUpperCase()}${searches.slice(1)}`}
            aria-keyshortcuts="/"
            spellCheck={false}
            autoComplete="off"
            className={`${FIELD} w-full max-sm:placeholder:text-xs sm:pr-9`}
          />
          <span
            aria-hidden="true"
            className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 rounded border border-edge px-1.5 font-mono text-xs text-faint max-sm:hidden"
          >
            /
          </span>
        </span>
        {children}
        <button
          type="submit"
          className="h-9 rounded-md border border-edge bg-surface px-3 hover:border-accent hover:text-accent"
        >
          Search
        </button>
        {isAsked && (
          <Link
            href={addressOf(path, Object.fromEntries(preserved.map((name) => [name, query[name] ?? ''])))}
            prefetch={false}
            className="px-1 text-soft underline-offset-4 hover:underline"
          >
            Clear
          </Link>
        )}
      </form>
      {filters.length > 0 && (
        <ul aria-label="Filters" className="mb-3 flex flex-wrap gap-2">
          {filters.map(({ name, label, value }) => (
            <li key={name}>
              <Link
                href={addressOf(path, { ...query, [name]: '', page: '' })}
                prefetch={false}
                aria-label={`Remove the filter ${label}: ${value}`}
                className="inline-flex max-w-full items-baseline gap-2 rounded-full bg-accent-wash px-3 py-1 text-[0.8125rem] text-accent-strong hover:underline"
              >
                <span className="min-w-0 [overflow-wrap:anywhere]">
                  {label}: <span className="font-medium">{value}</span>
                </span>
                <span aria-hidden="true">×</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      <SearchKey />
    </search>
  )
}
