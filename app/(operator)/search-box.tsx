import { SearchKey } from './search-key.tsx'

/** The search over all records, on every page, with or without JavaScript. */
export function SearchBox({ q = '' }: { q?: string | undefined }) {
  return (
    <search className="block">
      <form action="/search" method="get" className="relative">
        <label htmlFor="q" className="sr-only">
          Search all records
        </label>
        <input
          id="q"
          name="q"
          type="search"
          key={q}
          defaultValue={q}
          placeholder="Search"
          title="Name, email, hash, address, id or request id"
          aria-keyshortcuts="/ Control+K Meta+K"
          maxLength={200}
          spellCheck={false}
          autoComplete="off"
          className="h-9 w-full min-w-0 rounded-md border border-edge bg-surface px-3 placeholder:text-faint lg:pr-9"
        />
        <span
          aria-hidden="true"
          className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 rounded border border-edge px-1.5 font-mono text-xs text-faint max-lg:hidden"
        >
          /
        </span>
      </form>
      <SearchKey />
    </search>
  )
}
