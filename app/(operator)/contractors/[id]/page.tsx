import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import type { ContractorLine } from '#lib/dashboard/contractors.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { NEWEST_PAYOUTS, readContractorPage } from '#lib/dashboard/record-pages.ts'
import type { Fact } from '../../facts.tsx'
import { Moment } from '../../figures.tsx'
import { Address } from '../../hash.tsx'
import RecordNotFound from '../../not-found.tsx'
import { CONTRACTOR_PAYOUT_COLUMNS } from '../../payouts/payout-list.tsx'
import { OrganisationLink, PaymentLinks, recordPath, User } from '../../record-links.tsx'
import { RecordView } from '../../record-view.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Sign, Status } from '../../status.tsx'
import { Table } from '../../table.tsx'
import { inviteWords, registrationWords } from '../contractor-list.tsx'
import { ResendInvite } from '../resend-invite.tsx'

export const metadata: Metadata = { title: 'A contractor' }

/** A contractor without its rate, which would reveal its pay to the operator. */
export default async function ContractorPage({ params }: PageProps<'/contractors/[id]'>) {
  const { id } = await params
  const path = recordPath('contractor', encodeURIComponent(id))
  const { database, settings, now } = await requireOperator(path)
  const found = await readIfReachable(database, async (db) => ({ page: await readContractorPage(db, id) }))
  if (found && !found.page) return missing(<RecordNotFound />)
  const network = settings.network.name
  const page = found?.page
  return (
    <RecordView
      here="/contractors"
      title={page?.record.name ?? 'A contractor'}
      network={network}
      above={{ href: '/contractors', name: 'Contractors' }}
      path={path}
      now={now()}
      page={page}
      facts={(contractor) => factsOf(contractor, network, now())}
      actions={(contractor) => settings.mail && <ResendInvite contractor={contractor} back={path} />}
      older={{ record: id }}
    >
      {page && page.payouts.length > 0 && (
        <section aria-labelledby="payouts" className="mb-8">
          <h2 id="payouts" className="mb-2 font-semibold">
            Payouts
            {page.payouts.length === NEWEST_PAYOUTS && (
              <span className="ml-2 font-normal text-faint">the newest {NEWEST_PAYOUTS}</span>
            )}
          </h2>
          <Table
            caption="Payouts, newest first"
            view={{ now: now(), network }}
            columns={CONTRACTOR_PAYOUT_COLUMNS}
            rows={page.payouts}
            keyOf={(payout) => payout.id}
          />
        </section>
      )}
    </RecordView>
  )
}

function factsOf(contractor: ContractorLine, network: string, now: Date): Fact[] {
  const { id, status, email, organisation, organisationName, address, lastPaidAt, createdAt, deletedAt } = contractor
  return [
    ['Status', <Status key={id} of="contractor" is={status} />],
    ...(deletedAt ? [['Removed', <Moment key={id} at={deletedAt} now={now} />] as Fact] : []),
    ['Organisation', <OrganisationLink key={id} id={organisation} name={organisationName} />],
    ['Email', email ? <User key={id} sub="" email={email} network={network} /> : '–'],
    ['Account', address ? <Address key={id} value={address} network={network} isWhole /> : '–'],
    [
      'On the ledger',
      <Sign key={id} tone={contractor.isRegistered ? 'good' : 'idle'}>
        {registrationWords(contractor)}
      </Sign>,
    ],
    ['Invite', inviteWords(contractor, now)],
    ['Payments', <PaymentLinks key={id} of={{ contractor: id }} />],
    ['Last paid', lastPaidAt ? <Moment key={id} at={lastPaidAt} now={now} /> : 'Never'],
    ['Added', <Moment key={id} at={createdAt} now={now} />],
    ['Contractor id', <code key={id}>{id}</code>],
  ]
}
