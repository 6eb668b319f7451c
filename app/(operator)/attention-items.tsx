import type { Route } from 'next'
import Link from 'next/link'
import type { Attention } from '#lib/dashboard/attention.ts'
import { ActionForm } from './action-form.tsx'
import { age, Moment } from './figures.tsx'
import { BatchLink, ContractorLink, OrganisationLink, User } from './record-links.tsx'
import { Shape } from './status.tsx'

interface AttentionItemsProps {
  items: readonly Attention[]
  /** the page that shows them */
  back: string
  network: string
  now: Date
}

/** The items that need attention, each with the people it concerns, its time, its reason, and its remedy. */
export function AttentionItems({ items, ...page }: AttentionItemsProps) {
  return (
    <ul className="divide-y divide-line rounded-lg border border-line bg-surface shadow-card">
      {items.map((item) => (
        <li key={item.key}>
          <AttentionItem item={item} {...page} />
        </li>
      ))}
    </ul>
  )
}

type AttentionItemProps = Omit<AttentionItemsProps, 'items'> & { item: Attention }

function AttentionItem({ item, back, network, now }: AttentionItemProps) {
  const { level, since, what, why, remedy, actor, page } = item
  return (
    <div className="grid gap-x-6 gap-y-1 px-4 py-3 sm:grid-cols-[minmax(0,1fr)_auto] sm:px-5">
      <div className="min-w-0">
        <p className="font-medium">
          <Shape tone={level} />
          {page ? (
            <Link
              href={page as Route}
              prefetch={false}
              className="inline-block min-h-6 underline-offset-4 hover:text-accent hover:underline"
            >
              {what}
            </Link>
          ) : (
            what
          )}
        </p>
        <Of item={item} network={network} />
        {why && (
          <p className="text-soft [overflow-wrap:anywhere]">
            <span className="text-faint">Why: </span>
            {why}
          </p>
        )}
        <p className="mt-1 [overflow-wrap:anywhere]">
          <span className="text-faint">{actor === 'operator' ? 'To do: ' : 'To do by the employer: '}</span>
          {remedy}
        </p>
        <Acknowledgement item={item} back={back} now={now} />
      </div>
      {since && (
        <p className="text-[0.8125rem] text-soft sm:text-right">
          <span className="sr-only">for {age(since, now)}, </span>
          <Moment at={since} now={now} />
        </p>
      )}
    </div>
  )
}

/** Who has acknowledged the item and why, or else the form for it. */
function Acknowledgement({ item, back, now }: Pick<AttentionItemProps, 'item' | 'back' | 'now'>) {
  const { acknowledgeable, acknowledgement, what } = item
  if (acknowledgement) {
    return (
      <p className="mt-1 text-soft [overflow-wrap:anywhere]">
        <span className="text-faint">Acknowledged by </span>
        {acknowledgement.operator} <Moment at={acknowledgement.at} now={now} />: {acknowledgement.note}
      </p>
    )
  }
  if (!acknowledgeable) return null
  const { condition, subject, lastEvent } = acknowledgeable
  return (
    <ActionForm
      action="acknowledge"
      subject={subject}
      back={back}
      label="Acknowledge"
      about={what}
      why="Why nothing more needs to be done"
      fields={{ condition, seen: lastEvent.toISOString() }}
    />
  )
}

/** The organisation, users, batch and contractors that an item concerns; each name links to its records. */
function Of({ item, network }: Pick<AttentionItemProps, 'item' | 'network'>) {
  const { organisation, users = [], batch, contractors = [], moreContractors = 0 } = item
  if (!organisation && !batch && contractors.length === 0) return null
  const emailable = users.filter(({ email }) => email !== null)
  // A wallet can't be emailed, so show it only if there is no email.
  const contacts = emailable.length > 0 ? emailable : users
  return (
    <p className="text-soft">
      {organisation && <OrganisationLink {...organisation} />}
      {contacts.map((user, index) => (
        <span key={user.sub}>
          {index === 0 ? ' (' : ', '}
          <User {...user} network={network} />
          {index === contacts.length - 1 && ')'}
        </span>
      ))}
      {batch && (
        <>
          {organisation && ' · '}
          <BatchLink {...batch} />
        </>
      )}
      {contractors.map((contractor, index) => (
        <span key={contractor.id}>
          {index === 0 ? ' · ' : ', '}
          <ContractorLink {...contractor} />
        </span>
      ))}
      {moreContractors > 0 && ` and ${moreContractors} more`}
    </p>
  )
}
