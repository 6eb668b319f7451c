import { payoutState } from '#lib/dashboard/lateness.ts'
import { readPayoutPage } from '#lib/dashboard/record-pages.ts'
import { Moment } from '../../figures.tsx'
import { Address, TransactionHash } from '../../hash.tsx'
import { RecordLink, recordPath } from '../../record-links.tsx'
import { recordPage } from '../../record-page.tsx'
import { Status } from '../../status.tsx'
import { whyUnpaid } from '../payout-list.tsx'

export const metadata = { title: 'A payout' }

export default recordPage({
  type: 'payout',
  here: '/batches',
  read: (db, { id }) => readPayoutPage(db, id),
  title: (payout) => (payout ? `Payout to ${payout.contractor}` : 'A payout'),
  above: ({ batchId, batch }) => ({ href: recordPath('batch', batchId), name: batch }),
  facts: (payout, view) => {
    const { id, address, transferId, ledgerHash, paidAt } = payout
    return {
      Status: <Status is={payoutState(payout, view.now)} />,
      Why: whyUnpaid(payout, view.now),
      Contractor: <RecordLink type="contractor" id={payout.contractorId} name={payout.contractor} />,
      Batch: <RecordLink type="batch" id={payout.batchId} name={payout.batch} />,
      Organisation: <RecordLink type="organisation" id={payout.organisationId} name={payout.organisation} />,
      Account: address ? <Address value={address} network={view.network} isWhole /> : '–',
      Transfer: transferId && <RecordLink type="transfer" id={transferId} name={transferId} />,
      Hash: ledgerHash && <TransactionHash value={ledgerHash} network={view.network} isWhole />,
      Created: <Moment at={payout.createdAt} now={view.now} />,
      Paid: paidAt && <Moment at={paidAt} now={view.now} />,
      'External id': payout.externalId && <code>{payout.externalId}</code>,
      'Payout id': <code>{id}</code>,
    }
  },
})
