import type { ReactNode } from 'react'

/** What stands where a search or a filter leaves nothing; `children` say what a search finds. */
export function NothingFound({ search, children }: { search: string; children: ReactNode }) {
  return (
    <>
      <strong>Nothing found</strong>
      {search !== '' && <p className="mx-auto max-w-prose text-balance">{children}</p>}
    </>
  )
}
