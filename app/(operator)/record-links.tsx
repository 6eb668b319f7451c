import type { Route } from 'next'
import Link from 'next/link'
import type { ComponentProps } from 'react'
import type { OrganisationUser } from '#lib/dashboard/attention.ts'
import type { Mention, Reference, Sentence } from '#lib/dashboard/sentence.ts'
import { Address } from './hash.tsx'
import { addressOf } from './query.ts'

const NAME = 'inline-block min-h-6 underline-offset-4 [overflow-wrap:anywhere] hover:text-accent hover:underline'

/** Class names of links: `ACCENT` shows a link by its colour, `UNDERLINED` by a line. */
export const ACCENT = 'inline-block min-h-6 leading-6 text-accent underline-offset-4 hover:underline'
export const UNDERLINED = 'inline-block min-h-6 underline underline-offset-4 hover:text-accent'

type PageLinkProps = Omit<ComponentProps<typeof Link<Route>>, 'href'> & { href: Route; name?: string | undefined }

/** A link to a page of this service. It loads the page only once it is clicked: a list links to hundreds. */
export const PageLink = ({ name, children = name, className = NAME, ...props }: PageLinkProps) => (
  <Link {...props} prefetch={false} className={className}>
    {children}
  </Link>
)

/** A user of an organisation, shown by email, so that it can be contacted, or else by wallet. */
export function User({ sub, email, ...view }: OrganisationUser & { network: string; isWhole?: boolean }) {
  if (email === null) return sub.length > 40 ? <Address value={sub} {...view} /> : sub
  return (
    <a href={`mailto:${email}`} className={NAME}>
      {email}
    </a>
  )
}

const PATHS = {
  transfer: '/transfers',
  payout: '/payouts',
  batch: '/batches',
  job: '/jobs',
  contractor: '/contractors',
  organisation: '/organisations',
} as const
export type RecordType = keyof typeof PATHS

export const isRecordType = (text: string): text is RecordType => Object.hasOwn(PATHS, text)

/** The path of a record's page. */
export const recordPath = (type: RecordType, id: string): Route => addressOf(`${PATHS[type]}/${id}`, {})

/** The page of what a name in a sentence stands for. A channel is on the page of jobs, and an account found by a search. */
function pathOf({ type, id }: Reference): Route {
  if (type === 'channel') return `/jobs#${id}` as Route
  if (type === 'account') return addressOf('/search', { q: id })
  if (type === 'operator') return addressOf('/audit', { actor: `operator:${id}` })
  return recordPath(type, id)
}

const MENTION = 'font-medium underline decoration-edge underline-offset-4 hover:text-accent'

/** A sentence whose names are links. */
export function SentenceWithLinks({ sentence }: { sentence: Sentence }) {
  return sentence.map((part, index) =>
    typeof part === 'string' ? (
      part
    ) : (
      <PageLink key={keyOf(part, index)} href={pathOf(part.of)} name={part.text} className={MENTION} />
    ),
  )
}

/** A name may occur twice, so its position tells the two apart. */
const keyOf = ({ of }: Mention, index: number) => `${of.type} ${of.id} ${index}`

interface RecordLinkProps {
  type: RecordType
  id: string
  /** by default the beginning of its id */
  name?: string | null
}

/** The link to the page of a record. */
export const RecordLink = ({ type, id, name }: RecordLinkProps) => (
  <PageLink href={recordPath(type, id)} name={name ?? id.slice(0, 8)} />
)

export const ApiReference = ({ className }: { className?: string }) => (
  <PageLink href={'/docs' as Route} name="API reference" className={className ?? ''} />
)

/** Links to the transfers and the relay jobs of an organisation or a contractor. */
export const PaymentLinks = ({ of }: { of: { organisation: string } | { contractor: string } }) => (
  <span className="flex flex-wrap gap-x-4 print:hidden">
    <PageLink href={addressOf('/transfers', of)} name="All transfers" className={UNDERLINED} />
    <PageLink href={addressOf('/jobs', of)} name="Relay jobs" className={UNDERLINED} />
  </span>
)
