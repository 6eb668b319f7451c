import { readOrganisationPage } from '#lib/dashboard/record-pages.ts'
import { Moment } from '../../figures.tsx'
import { PaymentLinks, User } from '../../record-links.tsx'
import { recordPage } from '../../record-page.tsx'
import { Sign } from '../../status.tsx'
import { Count, Fees } from '../organisation-list.tsx'
import { Failures, Webhooks } from '../webhook-list.tsx'

export const metadata = { title: 'An organisation' }

/** An organisation, with links to its records in the lists. */
export default recordPage({
  type: 'organisation',
  here: '/organisations',
  read: (db, { id, now }) => readOrganisationPage(db, id, now),
  title: (organisation) => organisation?.name ?? 'An organisation',
  entries: 'organisation',
  facts: ({ id, users, contractors, batches, started, stalled, costs, lastPaidAt, createdAt }, { now, network }) => ({
    Users:
      users.length === 0
        ? '–'
        : users.map((user) => (
            <span key={user.sub} className="block">
              <User {...user} network={network} isWhole />
            </span>
          )),
    Contractors: <Count id={id} count={contractors} path="/contractors" />,
    Batches: <Count id={id} count={batches} path="/batches" />,
    'In progress': (
      <>
        <Count id={id} count={started} path="/batches" status="started" />
        {stalled > 0 && (
          <span className="ml-3">
            <Sign tone="late">{stalled} stalled</Sign>
          </span>
        )}
      </>
    ),
    Payments: <PaymentLinks of={{ organisation: id }} />,
    'Fees, 24 hours': <Fees of={costs['24h']} />,
    'Fees, 30 days': <Fees of={costs['30d']} />,
    'Last paid': lastPaidAt ? <Moment at={lastPaidAt} now={now} /> : 'Never',
    Founded: <Moment at={createdAt} now={now} />,
    'Organisation id': <code>{id}</code>,
  }),
  content: ({ webhooks, failures }, view) => (
    <>
      <Webhooks webhooks={webhooks} {...view} />
      <Failures failures={failures} {...view} />
    </>
  ),
})
