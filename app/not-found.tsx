import type { Metadata } from 'next'
import Link from 'next/link'

export const metadata: Metadata = { title: 'Not found' }

/** The page for an address that does not exist. */
export default function NotFound() {
  return (
    <main className="mx-auto flex min-h-dvh max-w-md flex-col items-center justify-center px-6 py-16 text-center">
      <p className="text-faint">404</p>
      <h1 className="mt-1 text-2xl font-semibold tracking-tight">There is nothing here</h1>
      <p className="mt-3 text-soft">The address may be mistyped, or the page has been removed.</p>
      <p className="mt-6">
        <Link href="/" prefetch={false} className="font-medium text-accent underline-offset-4 hover:underline">
          Back to the start
        </Link>
      </p>
    </main>
  )
}
