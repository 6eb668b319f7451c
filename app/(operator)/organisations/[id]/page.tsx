import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import type { OrganisationLine } from '#lib/dashboard/organisations.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { readOrganisationPage } from '#lib/dashboard/record-pages.ts'
import type { Fact } from '../../facts.tsx'
import { Moment } from '../../figures.tsx'
import RecordNotFound from '../../not-found.tsx'
import { PaymentLinks, recordPath, User } from '../../record-links.tsx'
import { RecordView } from '../../record-view.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Sign } from '../../status.tsx'
import { Count } from '../count.tsx'
import { describeFees } from '../fees.tsx'

export const metadata: Metadata = { title: 'An organisation' }

/** An organisation, with links to its records in the lists. */
export default async function OrganisationPage({ params }: PageProps<'/organisations/[id]'>) {
  const { id } = await params
  const path = recordPath('organisation', encodeURIComponent(id))
  const { database, settings, now } = await requireOperator(path)
  const found = await readIfReachable(database, async (db) => ({ page: await readOrganisationPage(db, id, now()) }))
  if (found && !found.page) return missing(<RecordNotFound />)
  const network = settings.network.name
  return (
    <RecordView
      here="/organisations"
      title={found?.page?.record.name ?? 'An organisation'}
      network={network}
      above={{ href: '/organisations', name: 'Organisations' }}
      path={path}
      now={now()}
      page={found?.page}
      facts={(organisation) => factsOf(organisation, network, now())}
      older={{ organisation: id }}
    />
  )
}

function factsOf(organisation: OrganisationLine, network: string, now: Date): Fact[] {
  const { id, users, contractors, batches, started, stalled, costs, lastPaidAt, createdAt } = organisation
  return [
    [
      'Users',
      users.length === 0
        ? '–'
        : users.map((user) => (
            <span key={user.sub} className="block">
              <User {...user} network={network} isWhole />
            </span>
          )),
    ],
    ['Contractors', <Count key={id} id={id} count={contractors} path="/contractors" />],
    ['Batches', <Count key={id} id={id} count={batches} path="/batches" />],
    [
      'In progress',
      <span key={id}>
        <Count id={id} count={started} path="/batches" status="started" />
        {stalled > 0 && (
          <span className="ml-3">
            <Sign tone="late">{stalled} stalled</Sign>
          </span>
        )}
      </span>,
    ],
    ['Payments', <PaymentLinks key={id} of={{ organisation: id }} />],
    ['Fees, 24 hours', describeFees(costs['24h'])],
    ['Fees, 30 days', describeFees(costs['30d'])],
    ['Last paid', lastPaidAt ? <Moment key={id} at={lastPaidAt} now={now} /> : 'Never'],
    ['Founded', <Moment key={id} at={createdAt} now={now} />],
    ['Organisation id', <code key={id}>{id}</code>],
  ]
}
