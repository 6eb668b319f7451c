import type { Route } from 'next'
import Link from 'next/link'

/** The content of an unknown page of the reference. */
export function NoSuchPage() {
  return (
    <>
      <h1 className="text-2xl font-semibold tracking-tight">There is nothing here</h1>
      <p className="mt-2 text-soft">
        The{' '}
        <Link href={'/docs' as Route} prefetch={false} className="underline underline-offset-4 hover:text-accent">
          API reference
        </Link>{' '}
        lists every operation.
      </p>
    </>
  )
}
