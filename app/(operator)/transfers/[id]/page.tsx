import { transferState } from '#lib/dashboard/lateness.ts'
import { readTransferPage } from '#lib/dashboard/record-pages.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { formatUnits } from '#lib/text/money.ts'
import { ActionForm } from '../../action-form.tsx'
import { between, Moment } from '../../figures.tsx'
import { Address } from '../../hash.tsx'
import { RecordLink } from '../../record-links.tsx'
import { recordPage } from '../../record-page.tsx'
import { Status } from '../../status.tsx'
import { TransferHashes } from '../transfer-hashes.tsx'
import { KIND_WORDS, whyNotSucceeded } from '../transfer-list.tsx'

export const metadata = { title: 'A transfer' }

export default recordPage({
  type: 'transfer',
  here: '/transfers',
  read: (db, { id, now }) => readTransferPage(db, id, now),
  title: (_, id) => `Transfer ${id.slice(0, 8)}`,
  facts: (transfer, view) => {
    const { id, account, owner, quotaAccount, organisation, payout, batch, contractor, job, ledger } = transfer
    const { createdAt, settledAt, feeCharged } = transfer
    return {
      Result: <Status is={transferState(transfer, view.now)} />,
      Why: whyNotSucceeded(transfer, view.now),
      What: KIND_WORDS[transfer.kind],
      Organisation: organisation && (
        <RecordLink type="organisation" id={organisation} name={transfer.organisationName} />
      ),
      Pays: contractor && <RecordLink type="contractor" id={contractor} name={transfer.contractorName} />,
      Batch: batch && <RecordLink type="batch" id={batch} name={transfer.batchName} />,
      Payout: payout && <RecordLink type="payout" id={payout} name={payout} />,
      'Relay job': job && <RecordLink type="job" id={job} name={job} />,
      From: <Address value={account} network={view.network} isWhole />,
      'From the escrow of': owner && <Address value={owner} network={view.network} isWhole />,
      To: <Address value={transfer.recipient} network={view.network} isWhole />,
      'Counts against': quotaAccount && quotaAccount !== (owner ?? account) && (
        <Address value={quotaAccount} network={view.network} isWhole />
      ),
      Hashes: <TransferHashes transfer={transfer} network={view.network} />,
      Ledger: ledger !== null && groupDigits(ledger),
      'Fee charged': feeCharged === null ? '–' : `${formatUnits(feeCharged)} XLM`,
      Bid: `${formatUnits(transfer.bid)} XLM`,
      Accepted: <Moment at={createdAt} now={view.now} />,
      Settled: settledAt && (
        <>
          <Moment at={settledAt} now={view.now} />, after {between(createdAt, settledAt)}
        </>
      ),
      'Transfer id': <code>{id}</code>,
    }
  },
  actions: ({ id, status }, { path }) =>
    status === 'open' && <ActionForm action="look-up-transfer" subject={id} back={path} label="Look up now" />,
})
