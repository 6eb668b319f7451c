import type { Route } from 'next'
import Link from 'next/link'
import type { ReactNode } from 'react'
import { CopyListener } from '#app/(operator)/copy-listener.tsx'
import { BrandMark } from '#app/brand-mark.tsx'
import { GUIDES } from '#lib/api/reference/guides.ts'
import { reference } from '#lib/api/reference/reference.ts'
import { Navigation } from './navigation.tsx'
import { SessionBar } from './session-bar.tsx'
import { startedService } from './started-service.ts'

/** The frame of the API reference: the session, the content, and the navigation. */
export default async function DocsLayout({ children }: { children: ReactNode }) {
  const { settings } = await startedService()
  const groups = reference().map(({ slug, name, operations }) => ({
    slug,
    name,
    operations: operations.map(({ id, method, path, summary }) => ({ id, method, path, summary })),
  }))
  return (
    <div className="print:block lg:grid lg:min-h-dvh lg:grid-cols-[19rem_minmax(0,1fr)]">
      <a
        href="#content"
        className="sr-only rounded-md bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-10"
      >
        Skip to the content
      </a>
      <header className="flex flex-wrap items-center justify-between gap-x-6 border-b border-line bg-surface px-4 py-3 sm:px-6 lg:col-span-2 lg:px-5 print:hidden">
        <Link href="/" prefetch={false} className="flex items-center gap-2.5 py-1 font-semibold tracking-tight">
          <BrandMark />
          Confidential payroll
        </Link>
        <p className="flex flex-wrap gap-x-5">
          <Link href={'/docs' as Route} prefetch={false} className="py-1 text-soft hover:text-accent">
            API reference
          </Link>
          <a href="#operations" className="py-1 text-soft hover:text-accent lg:hidden">
            All operations
          </a>
        </p>
      </header>
      <div className="min-w-0 lg:order-last">
        <main
          id="content"
          tabIndex={-1}
          className="w-full max-w-[64rem] px-4 py-6 outline-none sm:px-6 lg:px-10 lg:py-8"
        >
          <SessionBar hasTestIssuer={settings.testIssuer !== undefined} />
          {children}
        </main>
      </div>
      <div className="border-line bg-surface lg:sticky lg:top-0 lg:h-dvh lg:overflow-y-auto lg:border-r max-lg:border-t print:hidden">
        <Navigation groups={groups} guides={Object.entries(GUIDES)} />
      </div>
      <CopyListener />
    </div>
  )
}
