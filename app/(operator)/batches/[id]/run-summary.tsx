import type { BatchApproval } from '#lib/dashboard/approvals.ts'
import type { BatchLine } from '#lib/dashboard/batches.ts'
import type { BatchRun } from '#lib/dashboard/paying-channels.ts'
import { Moment, type View } from '../../figures.tsx'
import { Address } from '../../hash.tsx'
import { Status } from '../../status.tsx'

interface RunSummaryProps extends View {
  run: BatchRun | undefined
  approval: BatchApproval | undefined
  batch: Pick<BatchLine, 'status' | 'startedAt'>
}

/** How a batch is paid: by the client, or by the relay through channels that the employer has delegated to. */
export function RunSummary({ run, approval, batch, network, now }: RunSummaryProps) {
  return (
    <section aria-label="Payment" className="mb-6 rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
      {run ? (
        <>
          <p className="flex flex-wrap gap-x-3">
            Paid by the relay, from the delegations of <Address value={run.account} network={network} isWhole />
            <Status is={run.status} />
            <span className="text-faint">
              since <Moment at={run.createdAt} now={now} />
            </span>
          </p>
          <ul className="mt-3 space-y-2">
            {run.channels.map(({ address, liveUntilLedger, paid, left, waitsFor }) => (
              <li key={address}>
                <Address value={address} network={network} isWhole />
                <span className="ml-2 text-soft">
                  {paid} paid, {left} left, delegated until ledger {liveUntilLedger}
                </span>
                {waitsFor && <p className="text-xs text-faint">waits for {waitsFor}</p>}
              </li>
            ))}
          </ul>
        </>
      ) : (
        !approval && <p>{wordsWithoutRun(batch)}</p>
      )}
      {approval && (
        <div className={run ? 'mt-4 border-t border-line pt-4' : ''}>
          <p>
            A run from <Address value={approval.account} network={network} isWhole /> needs more signatures. Signed so
            far, last <Moment at={approval.updatedAt} now={now} />, by
          </p>
          <ul aria-label="Signers" className="mt-3 space-y-2">
            {approval.signers.map((signer) => (
              <li key={signer}>
                <Address value={signer} network={network} isWhole />
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  )
}

function wordsWithoutRun({ status, startedAt }: RunSummaryProps['batch']): string {
  if (startedAt) return 'The client pays it, with one transfer for each payout.'
  if (status === 'draft') return 'The employer has not locked it yet: it may still add payouts, and none can be paid.'
  return 'It waits for the employer, who pays with one transfer for each payout, or has the relay pay.'
}
