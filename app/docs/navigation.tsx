'use client'

import type { Route } from 'next'
import Link from 'next/link'
import { usePathname } from 'next/navigation'
import { useState } from 'react'
import { useInteractive } from './interactive.ts'

interface NavigationProps {
  groups: readonly {
    slug: string
    name: string
    operations: readonly { id: string; method: string; path: string; summary: string }[]
  }[]
  /** names and titles */
  guides: readonly (readonly [string, string])[]
}

/** Every operation by section, with a filter, then the error codes and the guides. */
export function Navigation({ groups, guides }: NavigationProps) {
  const here = usePathname()
  const isInteractive = useInteractive()
  const [filter, setFilter] = useState('')
  const words = filter.toLowerCase().split(/\s+/)
  const found = groups.flatMap(({ operations, ...group }) => {
    const matching = operations.filter(({ id, method, path, summary }) => {
      const text = `${id} ${method} ${path} ${summary} ${group.name}`.toLowerCase()
      return words.every((word) => text.includes(word))
    })
    return matching.length === 0 ? [] : [{ ...group, operations: matching }]
  })
  const count = found.reduce((sum, { operations }) => sum + operations.length, 0)
  return (
    <nav id="operations" aria-label="Operations" className="px-4 py-4 text-[0.8125rem] sm:px-6 lg:px-4">
      {isInteractive && (
        <>
          <input
            type="search"
            aria-label="Filter the operations"
            placeholder="Filter, such as: POST batches"
            value={filter}
            onChange={({ target }) => setFilter(target.value)}
            className="mb-1 h-9 w-full rounded-md border border-edge bg-surface px-2.5 text-ink placeholder:text-faint"
          />
          <p role="status" className="mb-2 text-xs text-faint">
            {filter.trim() !== '' && (count === 1 ? '1 operation' : `${count} operations`)}
          </p>
        </>
      )}
      {found.map(({ slug, name, operations }) => (
        <div key={slug} className="mb-3">
          <NavLink href={`/docs/${slug}`} here={here} isHeading>
            {name}
          </NavLink>
          <ul>
            {operations.map(({ id, method, path, summary }) => (
              <li key={id}>
                <Link
                  href={`/docs/${slug}#${id}` as Route}
                  prefetch={false}
                  title={summary}
                  className="flex min-h-6 items-baseline gap-2 rounded px-2 py-0.5 text-soft hover:bg-raised hover:text-ink"
                >
                  <span className="w-11 shrink-0 font-mono text-[0.6875rem] text-faint">{method}</span>
                  <span className="[overflow-wrap:anywhere]">{path}</span>
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
      <NavLink href="/docs/errors" here={here} isHeading>
        Error codes
      </NavLink>
      <p className="mt-3 px-2 font-medium">Guides</p>
      <ul>
        {guides.map(([name, title]) => (
          <li key={name}>
            <NavLink href={`/docs/guides/${name}`} here={here}>
              {title}
            </NavLink>
          </li>
        ))}
      </ul>
    </nav>
  )
}

interface NavLinkProps {
  href: string
  here: string
  isHeading?: boolean
  children: string
}

function NavLink({ href, here, isHeading = false, children }: NavLinkProps) {
  return (
    <Link
      href={href as Route}
      prefetch={false}
      aria-current={href === here ? 'page' : undefined}
      className={`block min-h-6 rounded px-2 py-0.5 hover:bg-raised aria-[current]:bg-accent-wash aria-[current]:text-accent-strong ${isHeading ? 'font-medium' : 'text-soft hover:text-ink'}`}
    >
      {children}
    </Link>
  )
}
