import Link from 'next/link'
import type { OrganisationUser } from '#lib/dashboard/attention.ts'
import { Address } from './hash.tsx'
import { addressOf } from './query.ts'

const NAME = 'inline-block min-h-6 underline-offset-4 [overflow-wrap:anywhere] hover:text-accent hover:underline'

/** A user of an organisation, shown by email, so that it can be contacted, or else by wallet. */
export function User({ sub, email, network }: OrganisationUser & { network: string }) {
  if (email !== null) {
    return (
      <a href={`mailto:${email}`} className={NAME}>
        {email}
      </a>
    )
  }
  return sub.length > 40 ? <Address value={sub} network={network} /> : sub
}

/** The name of an organisation, linked to its records in the list at `path`. */
export function OrganisationLink({ id, name, path }: { id: string; name: string; path: string }) {
  return (
    <Link href={addressOf(path, { organisation: id })} prefetch={false} className={NAME}>
      {name}
    </Link>
  )
}

/** The name of a contractor, linked to the transfers that paid it. */
export function ContractorLink({ id, name }: { id: string; name: string }) {
  return (
    <Link href={addressOf('/transfers', { contractor: id })} prefetch={false} className={NAME}>
      {name}
    </Link>
  )
}

/** The name of a batch, linked to its page. */
export function BatchLink({ id, name }: { id: string; name: string }) {
  return (
    <Link href={addressOf(`/batches/${id}`, {})} prefetch={false} className={`${NAME} font-medium`}>
      {name}
    </Link>
  )
}
