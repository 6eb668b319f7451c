import type { Route } from 'next'
import Link from 'next/link'
import { connection } from 'next/server'
import { BrandMark } from './brand-mark.tsx'
import { SetupNotice } from './setup-notice.tsx'

interface Entrance {
  href: Route
  title: string
  text: string
}

const ENTRANCES: Entrance[] = [
  {
    href: '/docs' as Route,
    title: 'API reference',
    text: 'Every route with its bodies, responses and errors. Try them on the page.',
  },
  {
    href: '/overview' as Route,
    title: 'Operator dashboard',
    text: 'The state of every payroll, the sponsor’s spending, and the reason for each failure.',
  },
]

const PROMISES = [
  ['Sessions', 'A wallet signs a SEP-10 challenge, or an identity provider vouches for an email.'],
  ['Fee sponsorship', 'The employer signs the transfer; the sponsor pays the network fee with a fee bump (CAP-15).'],
  ['Back office', 'Contractors, batches and payouts, settled from the ledger.'],
  ['Confidential by construction', 'Amounts stay in the client’s proof. The service never holds a user’s key.'],
] as const

/** The first page: a description of the service, and links to its parts. */
export default async function StartPage() {
  await connection()
  return (
    <main className="mx-auto max-w-3xl px-6 py-16 sm:py-28">
      <p className="flex items-center gap-2.5 font-medium">
        <BrandMark />
        Confidential payroll
      </p>
      <h1 className="mt-10 max-w-xl text-3xl leading-tight font-semibold tracking-tight sm:text-4xl">
        Pay contractors on Stellar without revealing how much
      </h1>
      <p className="mt-5 max-w-xl text-base leading-relaxed text-soft">
        The backend of a payroll application on a test network, without real funds. It signs users in, pays the fees of
        their confidential transfers, and manages their contractors, batches and payouts.
      </p>
      <SetupNotice />
      <nav aria-label="Ways in" className="mt-10 grid gap-4 sm:grid-cols-2">
        {ENTRANCES.map(({ href, title, text }) => (
          <Link
            key={href}
            href={href}
            prefetch={false}
            className="group rounded-lg border border-line bg-surface p-5 shadow-card transition-colors hover:border-accent"
          >
            <span className="flex items-center justify-between text-base font-medium">
              {title}
              <span aria-hidden="true" className="text-faint transition-colors group-hover:text-accent">
                →
              </span>
            </span>
            <span className="mt-1.5 block text-soft">{text}</span>
          </Link>
        ))}
      </nav>
      <dl className="mt-14 grid gap-x-10 gap-y-7 border-t border-line pt-10 sm:grid-cols-2">
        {PROMISES.map(([term, description]) => (
          <div key={term}>
            <dt className="font-medium">{term}</dt>
            <dd className="mt-1 text-soft">{description}</dd>
          </div>
        ))}
      </dl>
    </main>
  )
}
