import type { Route } from 'next'
import type { ReactNode } from 'react'
import { BrandMark } from '#app/brand-mark.tsx'
import { nameVersion } from '#lib/config/version.ts'
import { CopyListener } from './copy-listener.tsx'
import { Live } from './live.tsx'
import { PendingBar } from './pending-bar.tsx'
import { ApiReference, PageLink } from './record-links.tsx'
import { readPagePulse } from './require-operator.ts'
import { SearchKey } from './search-key.tsx'

const PAGES = [
  ['/overview', 'Overview'],
  ['/batches', 'Batches'],
  ['/transfers', 'Transfers'],
  ['/contractors', 'Contractors'],
  ['/organisations', 'Organisations'],
  ['/jobs', 'Jobs'],
  ['/audit', 'Audit log'],
] as const

type PagePath = (typeof PAGES)[number][0]

/** The link to a page of the navigation, above the title of a page below it. */
export const linkTo = (href: PagePath) => ({ href, name: PAGES.find(([path]) => path === href)?.[1] ?? '' })

const ITEM =
  'block rounded-md px-2.5 py-1.5 whitespace-nowrap text-soft -outline-offset-2 transition-colors hover:bg-raised hover:text-ink aria-[current]:bg-accent-wash aria-[current]:font-medium aria-[current]:text-accent-strong'

export interface FrameProps {
  /** the page itself, or its parent page */
  here?: PagePath
  title: string
  network: string
  /** the text of a search */
  q?: string
  /** a link to the parent, above the title */
  above?: { href: Route; name: string }
  children: ReactNode
}

/** The frame of every page of the dashboard: navigation, title and content. */
export async function Frame({ here, title, network, q, above, children }: FrameProps) {
  const pulse = await readPagePulse()
  return (
    <div className="print:block lg:grid lg:min-h-dvh lg:grid-cols-[13.5rem_minmax(0,1fr)]">
      <a
        href="#content"
        className="sr-only rounded-md bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-10"
      >
        Skip to the content
      </a>
      <header className="print:hidden border-b border-line bg-surface lg:sticky lg:top-0 lg:flex lg:h-dvh lg:flex-col lg:border-r lg:border-b-0">
        <div className="flex items-center justify-between gap-3 px-4 pt-3 pb-1 sm:px-6 lg:px-5 lg:pt-5 lg:pb-4">
          <PageLink href="/" className="flex items-center gap-2.5 py-1 font-semibold tracking-tight">
            <BrandMark />
            <span className="whitespace-nowrap lg:text-[0.8125rem]">Confidential payroll</span>
          </PageLink>
          <span className="lg:hidden">
            <SignOut />
          </span>
        </div>
        <div className="px-4 py-2 sm:px-6 lg:px-3 lg:pt-0 lg:pb-4">
          <SearchBox q={q} />
        </div>
        <nav aria-label="Pages" className="px-2 sm:px-4 lg:px-3">
          <ul className="flex flex-wrap gap-x-0.5 pb-2 lg:flex-col lg:gap-0.5">
            {PAGES.map(([href, name]) => (
              <li key={href}>
                <PageLink href={href} name={name} aria-current={href === here ? 'page' : undefined} className={ITEM} />
              </li>
            ))}
            <li className="lg:hidden">
              <ApiReference className={ITEM} />
            </li>
          </ul>
        </nav>
        <div className="mt-auto hidden space-y-2 border-t border-line px-5 py-4 lg:block">
          <ApiReference className="block text-soft underline-offset-4 hover:underline" />
          <SignOut />
        </div>
      </header>
      <div className="flex min-w-0 flex-col">
        <main
          id="content"
          tabIndex={-1}
          className="w-full max-w-[76rem] flex-1 2xl:max-w-[108rem] px-4 py-6 outline-none sm:px-6 lg:px-10 lg:py-8"
        >
          {above && (
            <p className="mb-1">
              <PageLink href={above.href} className="text-soft underline-offset-4 hover:underline">
                <span aria-hidden="true">← </span>
                {above.name}
              </PageLink>
            </p>
          )}
          <div className="mb-5 flex flex-wrap items-center justify-between gap-x-6 gap-y-1">
            <h1 className="min-w-0 text-xl font-semibold tracking-tight break-words lg:text-2xl">{title}</h1>
            <p className="flex items-center gap-4 text-xs text-faint">
              <span>
                Network: <span className="font-medium text-soft">{network}</span>
              </span>
              <Live version={pulse?.version} isOpen={pulse?.isOpen ?? true} />
            </p>
          </div>
          <div className="figures">{children}</div>
        </main>
        <footer className="max-w-[76rem] 2xl:max-w-[108rem] px-4 pb-8 text-xs leading-relaxed text-faint sm:px-6 lg:px-10">
          <p className="border-t border-line pt-4 text-pretty">
            The operator cannot see pay: it is inside the client’s proof, which the service cannot read. The only
            figures here are network fees and the vault, which are public.
          </p>
          <p className="pt-2">Version {nameVersion()}</p>
        </footer>
      </div>
      <CopyListener />
      <PendingBar />
    </div>
  )
}

function SignOut() {
  return (
    <form method="post" action="/sign-out">
      <button type="submit" className="rounded-md py-1 text-soft underline-offset-4 hover:text-ink hover:underline">
        Sign out
      </button>
    </form>
  )
}

/** The search over all records, on every page, with or without JavaScript. */
function SearchBox({ q = '' }: { q?: string | undefined }) {
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
