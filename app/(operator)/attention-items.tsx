import type { Route } from 'next'
import { Fragment } from 'react'
import type { Attention } from '#lib/dashboard/attention.ts'
import { messageAbout, titleOf } from '#lib/dashboard/attention-message.ts'
import { ActionForm, BUTTON } from './action-form.tsx'
import { CopyButton } from './copy-button.tsx'
import { type Facts, shownOf } from './facts.tsx'
import { Moment, type View } from './figures.tsx'
import { Address } from './hash.tsx'
import { PageLink, RecordLink, User } from './record-links.tsx'
import { Shape } from './status.tsx'

interface AttentionItemsProps extends View {
  items: readonly Attention[]
  /** the page that shows them */
  back: string
}

/** The items that need attention: what, since when, for whom, why, and the next step with its action. */
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

function AttentionItem({ item, back, ...view }: AttentionItemProps) {
  const title = titleOf(item, view.now)
  const message = messageAbout(item, view.now)
  return (
    <div className="px-4 py-3 sm:px-5">
      <p className="flex font-medium [overflow-wrap:anywhere]">
        <span>
          <Shape tone={item.level} />
        </span>
        {item.page ? <PageLink href={item.page as Route} name={title} className={TITLE} /> : title}
      </p>
      <dl className="mt-1 grid grid-cols-[3.25rem_minmax(0,1fr)] items-baseline gap-y-0.5 text-soft [overflow-wrap:anywhere]">
        {shownOf(factsOf(item, message, view)).map(([term, value]) => (
          <Fragment key={term}>
            <dt className="text-faint">{term}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
      <Actions item={item} title={title} mail={message?.mail} back={back} />
    </div>
  )
}

const TITLE = 'min-h-6 underline-offset-4 hover:text-accent hover:underline'

function factsOf(item: Attention, message: ReturnType<typeof messageAbout>, { now, network }: View): Facts {
  const { since, affected, why, causes = [], remedy, acknowledgement } = item
  const isOfRecord = item.organisation || item.batch || item.contractors?.length || item.users?.length
  return {
    Since: since && <Moment at={since} now={now} />,
    For: affected ?? (isOfRecord && <People item={item} network={network} />),
    Why: why && (
      <>
        {why}
        {causes.length > 0 && (
          <ul className="list-disc pl-4">
            {causes.map((cause) => (
              <li key={cause}>{cause}</li>
            ))}
          </ul>
        )}
      </>
    ),
    Next: <span className="text-ink">{remedy}</span>,
    Tell: message && !message.mail && (
      <>
        “{message.request}” <CopyButton value={message.body} label="Copy the whole message" />
      </>
    ),
    Seen: acknowledgement && (
      <>
        Acknowledged by {acknowledgement.operator} <Moment at={acknowledgement.at} now={now} />: {acknowledgement.note}
      </>
    ),
  }
}

interface ActionsProps extends Pick<AttentionItemProps, 'item' | 'back'> {
  title: string
  /** a mailto URL, if the employer can be asked by email */
  mail: string | undefined
}

/** What an operator can do about the item. */
function Actions({ item, title, mail, back }: ActionsProps) {
  const { acknowledgeable, acknowledgement, isStop } = item
  const of = { back, about: title }
  return (
    <div className="mt-1.5 flex flex-wrap items-start gap-x-3 gap-y-1 empty:hidden sm:pl-13 print:hidden">
      {acknowledgeable?.condition === 'transferOverdue' && (
        <ActionForm {...of} action="look-up-transfer" subject={acknowledgeable.subject} label="Look up now" />
      )}
      {mail && (
        <a href={mail} className={`${BUTTON} mt-1 leading-5`}>
          Email the employer<span className="sr-only">: {title}</span>
        </a>
      )}
      {isStop && (
        <ActionForm
          {...of}
          action="resume-payments"
          subject="payments"
          label="Resume payments"
          why="Why it is safe, for the audit log"
        />
      )}
      {acknowledgeable && !acknowledgement && (
        <ActionForm
          {...of}
          action="acknowledge"
          subject={acknowledgeable.subject}
          label="Acknowledge"
          why="Why nothing more needs to be done"
          fields={{ condition: acknowledgeable.condition, seen: acknowledgeable.lastEvent.toISOString() }}
        />
      )}
    </div>
  )
}

/** The organisation, users, batch and contractors that an item concerns; each name links to its records. */
function People({ item, network }: Pick<AttentionItemProps, 'item' | 'network'>) {
  const { organisation, users = [], batch, contractors = [], recipients = [], moreContractors = 0 } = item
  const emailable = users.filter(({ email }) => email !== null)
  // A wallet can't be emailed, so show it only if there is no email.
  const contacts = emailable.length > 0 ? emailable : users
  const payees = [
    ...contractors.map((contractor) => <RecordLink key={contractor.id} type="contractor" {...contractor} />),
    ...recipients.map((recipient) => <Address key={recipient} value={recipient} network={network} />),
  ]
  return (
    <>
      {organisation && <RecordLink type="organisation" {...organisation} />}
      {contacts.map((user, index) => (
        <Fragment key={user.sub}>
          {index > 0 ? ', ' : ' '}
          {/* Keeps a parenthesis on the line of its email. */}
          <span className="inline-block max-w-full">
            {organisation && index === 0 && '('}
            <User {...user} network={network} />
            {organisation && index === contacts.length - 1 && ')'}
          </span>
        </Fragment>
      ))}
      {batch && (
        <>
          {(organisation || contacts.length > 0) && ' · '}
          <RecordLink type="batch" {...batch} />
        </>
      )}
      {payees.map((payee, index) => (
        <span key={payee.key}>
          {index === 0 ? ' · ' : ', '}
          {payee}
        </span>
      ))}
      {moreContractors > 0 && ` and ${moreContractors} more`}
    </>
  )
}
