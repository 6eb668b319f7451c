import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import { transferState } from '#lib/dashboard/lateness.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { readTransferPage } from '#lib/dashboard/record-pages.ts'
import type { TransferLine } from '#lib/dashboard/transfers.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { formatUnits } from '#lib/text/money.ts'
import { ActionForm } from '../../action-form.tsx'
import type { Fact } from '../../facts.tsx'
import { between, Moment } from '../../figures.tsx'
import { Address } from '../../hash.tsx'
import RecordNotFound from '../../not-found.tsx'
import { BatchLink, ContractorLink, JobLink, OrganisationLink, PayoutLink, recordPath } from '../../record-links.tsx'
import { RecordView } from '../../record-view.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Status } from '../../status.tsx'
import { TransferHashes } from '../transfer-hashes.tsx'
import { KIND_WORDS, whyNotSucceeded } from '../transfer-list.tsx'

export const metadata: Metadata = { title: 'A transfer' }

export default async function TransferPage({ params }: PageProps<'/transfers/[id]'>) {
  const { id } = await params
  const path = recordPath('transfer', encodeURIComponent(id))
  const { database, settings, now } = await requireOperator(path)
  const found = await readIfReachable(database, async (db) => ({ page: await readTransferPage(db, id, now()) }))
  if (found && !found.page) return missing(<RecordNotFound />)
  const network = settings.network.name
  return (
    <RecordView
      here="/transfers"
      title={`Transfer ${id.slice(0, 8)}`}
      network={network}
      above={{ href: '/transfers', name: 'Transfers' }}
      path={path}
      now={now()}
      page={found?.page}
      facts={(transfer) => factsOf(transfer, network, now())}
      actions={({ status }) =>
        status === 'open' && <ActionForm action="look-up-transfer" subject={id} back={path} label="Look up now" />
      }
      older={{ record: id }}
    />
  )
}

function factsOf(transfer: TransferLine, network: string, now: Date): Fact[] {
  const { id, kind, account, owner, recipient, quotaAccount, job, organisation, organisationName } = transfer
  const { payout, batch, batchName, contractor, contractorName, createdAt, settledAt, ledger } = transfer
  const why = whyNotSucceeded(transfer, now)
  return [
    ['Result', <Status key={id} of="transfer" is={transferState(transfer, now)} />],
    ...(why ? [['Why', why] as Fact] : []),
    ['What', KIND_WORDS[kind]],
    ...(organisation
      ? [['Organisation', <OrganisationLink key={id} id={organisation} name={organisationName ?? ''} />] as Fact]
      : []),
    ...(contractor ? [['Pays', <ContractorLink key={id} id={contractor} name={contractorName ?? ''} />] as Fact] : []),
    ...(batch ? [['Batch', <BatchLink key={id} id={batch} name={batchName ?? ''} />] as Fact] : []),
    ...(payout ? [['Payout', <PayoutLink key={id} id={payout} name={payout} />] as Fact] : []),
    ...(job ? [['Relay job', <JobLink key={id} id={job} name={job} />] as Fact] : []),
    ['From', <Address key={id} value={account} network={network} isWhole />],
    ...(owner === null
      ? []
      : [['From the escrow of', <Address key={id} value={owner} network={network} isWhole />] as Fact]),
    ['To', <Address key={id} value={recipient} network={network} isWhole />],
    ...(quotaAccount && quotaAccount !== (owner ?? account)
      ? [['Counts against', <Address key={id} value={quotaAccount} network={network} isWhole />] as Fact]
      : []),
    ['Hashes', <TransferHashes key={id} transfer={transfer} network={network} />],
    ...(ledger === null ? [] : [['Ledger', groupDigits(ledger)] as Fact]),
    ['Fee charged', transfer.feeCharged === null ? '–' : `${formatUnits(transfer.feeCharged)} XLM`],
    ['Bid', `${formatUnits(transfer.bid)} XLM`],
    ['Accepted', <Moment key={id} at={createdAt} now={now} />],
    ...(settledAt
      ? [
          [
            'Settled',
            <span key={id}>
              <Moment at={settledAt} now={now} />, after {between(createdAt, settledAt)}
            </span>,
          ] as Fact,
        ]
      : []),
    ['Transfer id', <code key={id}>{id}</code>],
  ]
}
