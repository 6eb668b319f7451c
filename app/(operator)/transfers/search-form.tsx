import Link from 'next/link'
import { addressOf } from '../listing.tsx'

/** Looks for an account or a hash in the part of the list that `view` names, with or without JavaScript. */
export function SearchForm({ search, view }: { search: string; view: string }) {
  return (
    <search>
      <form action="/transfers" method="get" className="mb-4 flex max-w-xl items-center gap-2">
        {view !== '' && <input type="hidden" name="view" value={view} />}
        <label htmlFor="search" className="sr-only">
          An account or a hash
        </label>
        <input
          id="search"
          name="search"
          type="search"
          key={search}
          defaultValue={search}
          placeholder="Account or hash"
          spellCheck={false}
          autoComplete="off"
          className="min-w-0 flex-1 rounded-md border border-edge bg-surface px-3 py-1.5 placeholder:text-faint"
        />
        <button
          type="submit"
          className="rounded-md border border-edge bg-surface px-3 py-1.5 hover:border-accent hover:text-accent"
        >
          Find
        </button>
        {search !== '' && (
          <Link
            href={addressOf('/transfers', { view })}
            prefetch={false}
            className="px-1 text-soft underline-offset-4 hover:underline"
          >
            Clear
          </Link>
        )}
      </form>
    </search>
  )
}
