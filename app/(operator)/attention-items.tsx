import type { Route } from 'next'
import Link from 'next/link'
import { Fragment, type ReactNode } from 'react'
import type { Attention } from '#lib/dashboard/attention.ts'
import { messageAbout, titleOf } from '#lib/dashboard/attention-message.ts'
import { ActionForm, BUTTON } from './action-form.tsx'
import { CopyButton } from './copy-button.tsx'
import { Moment } from './figures.tsx'
import { Address } from './hash.tsx'
import { BatchLink, ContractorLink, OrganisationLink, User } from './record-links.tsx'
import { Shape } from './status.tsx'

interface AttentionItemsProps {
  items: readonly Attention[]
  /** the page that shows them */
  back: string
  network: string
  now: Date
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

function AttentionItem({ item, back, network, now }: AttentionItemProps) {
  const { level, since, affected, why, causes = [], remedy, page, acknowledgement } = item
  const title = titleOf(item, now)
  const message = messageAbout(item, now)
  const isOfRecord = item.organisation || item.batch || item.contractors?.length || item.users?.length
  return (
    <div className="px-4 py-3 sm:px-5">
      <p className="flex font-medium [overflow-wrap:anywhere]">
        <span>
          <Shape tone={level} />
        </span>
        {page ? (
          <Link
            href={page as Route}
            prefetch={false}
            className="min-h-6 underline-offset-4 hover:text-accent hover:underline"
          >
            {title}
          </Link>
        ) : (
          title
        )}
      </p>
      <dl className="mt-1 grid grid-cols-[3.25rem_minmax(0,1fr)] items-baseline gap-y-0.5 text-soft [overflow-wrap:anywhere]">
        {since && (
          <Row term="Since">
            <Moment at={since} now={now} />
          </Row>
        )}
        {(isOfRecord || affected) && <Row term="For">{affected ?? <People item={item} network={network} />}</Row>}
        {why && (
          <Row term="Why">
            {why}
            {causes.length > 0 && (
              <ul className="list-disc pl-4">
                {causes.map((cause) => (
                  <li key={cause}>{cause}</li>
                ))}
              </ul>
            )}
          </Row>
        )}
        <Row term="Next">
          <span className="text-ink">{remedy}</span>
        </Row>
        {message && !message.mail && (
          <Row term="Tell">
            “{message.request}” <CopyButton value={message.body} label="Copy the whole message" />
          </Row>
        )}
        {acknowledgement && (
          <Row term="Seen">
            Acknowledged by {acknowledgement.operator} <Moment at={acknowledgement.at} now={now} />:{' '}
            {acknowledgement.note}
          </Row>
        )}
      </dl>
      <Actions item={item} title={title} mail={message?.mail} back={back} />
    </div>
  )
}

function Row({ term, children }: { term: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-faint">{term}</dt>
      <dd>{children}</dd>
    </>
  )
}

interface ActionsProps extends Pick<AttentionItemProps, 'item' | 'back'> {
  title: string
  /** a mailto URL, if the employer can be asked by email */
  mail: string | undefined
}

/** What an operator can do about the item. */
function Actions({ item, title, mail, back }: ActionsProps) {
  const { acknowledgeable, acknowledgement, isStop } = item
  return (
    <div className="mt-1.5 flex flex-wrap items-start gap-x-3 gap-y-1 empty:hidden sm:pl-13 print:hidden">
      {acknowledgeable?.condition === 'transferOverdue' && (
        <ActionForm
          action="look-up-transfer"
          subject={acknowledgeable.subject}
          back={back}
          label="Look up now"
          about={title}
        />
      )}
      {mail && (
        <a href={mail} className={`${BUTTON} mt-1 leading-5`}>
          Email the employer<span className="sr-only">: {title}</span>
        </a>
      )}
      {isStop && (
        <ActionForm
          action="resume-payments"
          subject="payments"
          back={back}
          label="Resume payments"
          about={title}
          why="Why it is safe, for the audit log"
        />
      )}
      {acknowledgeable && !acknowledgement && (
        <ActionForm
          action="acknowledge"
          subject={acknowledgeable.subject}
          back={back}
          label="Acknowledge"
          about={title}
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
  return (
    <>
      {organisation && <OrganisationLink {...organisation} />}
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
          <BatchLink {...batch} />
        </>
      )}
      {contractors.map((contractor, index) => (
        <span key={contractor.id}>
          {index === 0 ? ' · ' : ', '}
          <ContractorLink {...contractor} />
        </span>
      ))}
      {recipients.map((recipient, index) => (
        <span key={recipient}>
          {index === 0 && contractors.length === 0 ? ' · ' : ', '}
          <Address value={recipient} network={network} />
        </span>
      ))}
      {moreContractors > 0 && ` and ${moreContractors} more`}
    </>
  )
}
