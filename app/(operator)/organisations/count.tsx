import Link from 'next/link'
import { groupDigits } from '#lib/text/figures.ts'
import { addressOf } from '../query.ts'

/** A count that links to the records. */
export function Count({ id, count, path, status = '' }: { id: string; count: number; path: string; status?: string }) {
  if (count === 0) return <span className="text-faint">0</span>
  return (
    <Link
      href={addressOf(path, { organisation: id, status })}
      prefetch={false}
      className="inline-block min-h-6 min-w-6 underline underline-offset-4 hover:text-accent"
    >
      {groupDigits(count)}
    </Link>
  )
}
