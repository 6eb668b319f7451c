import type { RunEvidence } from '#lib/disclosure/run-evidence.ts'
import { readSigners } from '#lib/wallet/account-signers.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { parseManifest } from '#lib/wallet/manifest.ts'
import { patiently } from './patience.ts'
import { readBatch } from './payees.ts'
import { type PayrollClient, take } from './payroll-client.ts'
import { RunError } from './run-error.ts'

/**
 * Collects the evidence of the newest run of a batch. Signers and weights are read from the writer's own RPC.
 * @throws RunError `not-started` if the batch had no run; PayrollError; LedgerError
 */
export async function writeEvidence({
  client,
  deployment,
  batch,
}: {
  /** with a session of the employer */
  client: PayrollClient
  deployment: Pick<Deployment, 'rpc'>
  batch: string
}): Promise<RunEvidence> {
  const view = await patiently(() => take(client.GET('/batches/{id}/approval', { params: { path: { id: batch } } })))
  const manifest = parseManifest(view.manifest)
  if (view.status === 'waiting' || !manifest)
    throw new RunError(
      'not-started',
      'some payouts are still unpaid: evidence can be written once all are paid or canceled',
    )
  const { signers, thresholds, ledger } = await readSigners(deployment.rpc, manifest.account)
  const { payouts } = await readBatch(client, batch)
  const named = new Set(manifest.payouts.map(({ payout }) => payout))
  return {
    version: 'confidential-payroll-run-evidence/1',
    manifest: view.manifest,
    signatures: view.signers.flatMap(({ signature }) => signature ?? []),
    account: {
      address: manifest.account,
      ledger,
      mediumThreshold: thresholds.medium,
      signers: signers.map(({ key, weight }) => ({ key, weight })),
    },
    payments: payouts.flatMap(({ id, status, txHash }) =>
      named.has(id) && status === 'paid' && txHash !== undefined ? [{ payout: id, transaction: txHash }] : [],
    ),
  }
}
