import type { ReactNode } from 'react'

/** The facts of a record by their terms, in their order. One without a value is left out. */
export type Facts = Record<string, ReactNode>

/** Each fact with a value. */
export const shownOf = (facts: Facts) =>
  Object.entries(facts).filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')

/** The facts of a record, one per line. */
export function FactList({ facts }: { facts: Facts }) {
  return (
    <dl className="mb-6 divide-y divide-line rounded-lg border border-line bg-surface px-4 shadow-card sm:px-5">
      {shownOf(facts).map(([term, value]) => (
        <div
          key={term}
          className="grid gap-x-6 gap-y-0.5 py-2.5 sm:grid-cols-[9rem_minmax(0,1fr)] print:grid-cols-[9rem_minmax(0,1fr)]"
        >
          <dt className="text-soft">{term}</dt>
          <dd className="min-w-0 [overflow-wrap:anywhere] [&_a]:text-accent">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
