import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import { payoutState } from '#lib/dashboard/lateness.ts'
import type { PayoutLine } from '#lib/dashboard/payouts.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { readPayoutPage } from '#lib/dashboard/record-pages.ts'
import type { Fact } from '../../facts.tsx'
import { Moment } from '../../figures.tsx'
import { Address, TransactionHash } from '../../hash.tsx'
import RecordNotFound from '../../not-found.tsx'
import { BatchLink, ContractorLink, OrganisationLink, recordPath, TransferLink } from '../../record-links.tsx'
import { RecordView } from '../../record-view.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Status } from '../../status.tsx'
import { whyUnpaid } from '../payout-list.tsx'

export const metadata: Metadata = { title: 'A payout' }

export default async function PayoutPage({ params }: PageProps<'/payouts/[id]'>) {
  const { id } = await params
  const path = recordPath('payout', encodeURIComponent(id))
  const { database, settings, now } = await requireOperator(path)
  const found = await readIfReachable(database, async (db) => ({ page: await readPayoutPage(db, id) }))
  if (found && !found.page) return missing(<RecordNotFound />)
  const network = settings.network.name
  const payout = found?.page?.record
  return (
    <RecordView
      here="/batches"
      title={payout ? `Payout to ${payout.contractor}` : 'A payout'}
      network={network}
      above={
        payout
          ? { href: recordPath('batch', payout.batchId), name: payout.batch }
          : { href: '/batches', name: 'Batches' }
      }
      path={path}
      now={now()}
      page={found?.page}
      facts={(record) => factsOf(record, network, now())}
      older={{ record: id }}
    />
  )
}

function factsOf(payout: PayoutLine, network: string, now: Date): Fact[] {
  const { id, contractor, contractorId, batch, batchId, organisation, organisationId } = payout
  const { address, transferId, ledgerHash, createdAt, paidAt } = payout
  const why = whyUnpaid(payout, now)
  return [
    ['Status', <Status key={id} of="payout" is={payoutState(payout, now)} />],
    ...(why ? [['Why', why] as Fact] : []),
    ['Contractor', <ContractorLink key={id} id={contractorId} name={contractor} />],
    ['Batch', <BatchLink key={id} id={batchId} name={batch} />],
    ['Organisation', <OrganisationLink key={id} id={organisationId} name={organisation} />],
    ['Account', address ? <Address key={id} value={address} network={network} isWhole /> : '–'],
    ...(transferId ? [['Transfer', <TransferLink key={id} id={transferId} name={transferId} />] as Fact] : []),
    ...(ledgerHash ? [['Hash', <TransactionHash key={id} hash={ledgerHash} network={network} isWhole />] as Fact] : []),
    ['Created', <Moment key={id} at={createdAt} now={now} />],
    ...(paidAt ? [['Paid', <Moment key={id} at={paidAt} now={now} />] as Fact] : []),
    ['Payout id', <code key={id}>{id}</code>],
  ]
}
