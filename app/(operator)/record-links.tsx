import type { Route } from 'next'
import Link from 'next/link'
import type { OrganisationUser } from '#lib/dashboard/attention.ts'
import type { Mention, Reference, Sentence } from '#lib/dashboard/sentence.ts'
import { Address } from './hash.tsx'
import { addressOf } from './query.ts'

const NAME = 'inline-block min-h-6 underline-offset-4 [overflow-wrap:anywhere] hover:text-accent hover:underline'

/** A user of an organisation, shown by email, so that it can be contacted, or else by wallet. */
export function User({
  sub,
  email,
  network,
  isWhole = false,
}: OrganisationUser & { network: string; isWhole?: boolean }) {
  if (email !== null) {
    return (
      <a href={`mailto:${email}`} className={NAME}>
        {email}
      </a>
    )
  }
  return sub.length > 40 ? <Address value={sub} network={network} isWhole={isWhole} /> : sub
}

export type RecordType = 'transfer' | 'payout' | 'batch' | 'job' | 'contractor' | 'organisation'

const PATHS: Record<RecordType, string> = {
  transfer: '/transfers',
  payout: '/payouts',
  batch: '/batches',
  job: '/jobs',
  contractor: '/contractors',
  organisation: '/organisations',
}

/** The path of a record's page. */
export const recordPath = (type: RecordType, id: string): Route => addressOf(`${PATHS[type]}/${id}`, {})

/** The page of what a name in a sentence stands for. A channel is on the page of jobs, and an account found by a search. */
function pathOf({ type, id }: Reference): Route {
  if (type === 'channel') return `/jobs#${id}` as Route
  if (type === 'account') return addressOf('/search', { q: id })
  if (type === 'operator') return addressOf('/audit', { actor: `operator:${id}` })
  return recordPath(type, id)
}

/** A sentence whose names are links. */
export function SentenceWithLinks({ sentence }: { sentence: Sentence }) {
  return sentence.map((part, index) =>
    typeof part === 'string' ? (
      part
    ) : (
      <Link
        key={keyOf(part, index)}
        href={pathOf(part.of)}
        prefetch={false}
        className="font-medium underline decoration-edge underline-offset-4 hover:text-accent"
      >
        {part.text}
      </Link>
    ),
  )
}

/** A name may occur twice, so its position tells the two apart. */
const keyOf = ({ of }: Mention, index: number) => `${of.type} ${of.id} ${index}`

export interface RecordLinkProps {
  id: string
  name: string
}

function RecordLink({ type, id, name }: RecordLinkProps & { type: RecordType }) {
  return (
    <Link href={recordPath(type, id)} prefetch={false} className={NAME}>
      {name}
    </Link>
  )
}

export const OrganisationLink = (props: RecordLinkProps) => <RecordLink type="organisation" {...props} />

export const ContractorLink = (props: RecordLinkProps) => <RecordLink type="contractor" {...props} />

export const BatchLink = (props: RecordLinkProps) => <RecordLink type="batch" {...props} />

export const TransferLink = (props: RecordLinkProps) => <RecordLink type="transfer" {...props} />

export const PayoutLink = (props: RecordLinkProps) => <RecordLink type="payout" {...props} />

export const JobLink = (props: RecordLinkProps) => <RecordLink type="job" {...props} />

export function ApiReference() {
  return (
    <Link href={'/docs' as Route} prefetch={false}>
      API reference
    </Link>
  )
}

/** Links to the transfers and the relay jobs of an organisation or a contractor. */
export function PaymentLinks({ of }: { of: { organisation: string } | { contractor: string } }) {
  const lists = [
    ['/transfers', 'All transfers'],
    ['/jobs', 'Relay jobs'],
  ] as const
  return (
    <span className="flex flex-wrap gap-x-4 print:hidden">
      {lists.map(([path, name]) => (
        <Link
          key={path}
          href={addressOf(path, of)}
          prefetch={false}
          className="inline-block min-h-6 underline underline-offset-4 hover:text-accent"
        >
          {name}
        </Link>
      ))}
    </span>
  )
}
