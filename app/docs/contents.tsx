import Link from 'next/link'
import { BrandMark } from '#app/brand-mark.tsx'
import type { ReferenceGroup } from '#lib/openapi/reference.ts'
import { Method } from './method.tsx'

/** The way through the reference: beside it on a wide page, folded above it on a narrow one. */
export function Contents({ groups }: { groups: readonly ReferenceGroup[] }) {
  return (
    <header className="border-b border-line bg-surface lg:sticky lg:top-0 lg:flex lg:h-dvh lg:flex-col lg:border-r lg:border-b-0">
      <div className="px-4 pt-3 pb-2 sm:px-6 lg:px-5 lg:pt-5 lg:pb-4">
        <Link href="/" prefetch={false} className="flex items-center gap-2.5 py-1 font-semibold tracking-tight">
          <BrandMark />
          <span>Confidential payroll</span>
        </Link>
      </div>
      <details className="px-4 pb-3 sm:px-6 lg:hidden">
        <summary className="py-1 font-medium text-soft">All routes</summary>
        <nav aria-label="All routes" className="mt-2">
          <Routes groups={groups} />
        </nav>
      </details>
      <nav aria-label="Routes" className="hidden min-h-0 flex-1 overflow-y-auto px-3 pb-6 lg:block">
        <Routes groups={groups} />
      </nav>
    </header>
  )
}

function Routes({ groups }: { groups: readonly ReferenceGroup[] }) {
  return (
    <ul className="space-y-4">
      {groups.map(({ name, anchor, operations }) => (
        <li key={name}>
          <a href={`#${anchor}`} className="block px-2 py-1 text-xs font-medium text-faint hover:text-ink">
            {name}
          </a>
          <ul>
            {operations.map(({ id, method, path }) => (
              <li key={id}>
                <a
                  href={`#${id}`}
                  className="flex items-baseline gap-2 rounded-md px-2 py-1 text-[0.8125rem] text-soft -outline-offset-2 transition-colors hover:bg-raised hover:text-ink"
                >
                  <Method name={method} isSmall />
                  <span className="min-w-0 break-words">{path.replaceAll('/', '\u200b/')}</span>
                </a>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  )
}
