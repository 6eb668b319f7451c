import { countedOf, requireSame } from '#lib/sdk/batch-ready.ts'
import { findPaidBefore, notePayouts } from '#lib/sdk/paid-payouts.ts'
import { type BatchState, readBatch } from '#lib/sdk/payees.ts'
import { RunError } from '#lib/sdk/run-error.ts'
import { manifestOf } from '#lib/sdk/run-manifest.ts'
import type { Line, RunRequest } from '#lib/sdk/run-request.ts'
import { recognize } from '#lib/sdk/run-seals.ts'
import { signManifest } from '#lib/wallet/manifest.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import { signerOf } from '#lib/wallet/signer.ts'
import { requireTrusted } from '#lib/wallet/trusted-relay.ts'

type ManifestRequest = Pick<
  RunRequest,
  'deployment' | 'client' | 'holder' | 'relay' | 'batch' | 'notes' | 'assumesUnpaid' | 'say'
>

/**
 * The body of POST /batches/{id}/run, with a signature of the batch in its current state.
 * @param payees the employer's list; undefined signs the payees, seals and payouts that the API has, unchecked
 * @throws RunError `not-started` if a delegation is missing or a seal is not the employer's own; `already-paid`
 */
export async function signRun(request: ManifestRequest, payees: RunRequest['payees'] | undefined): Promise<string> {
  const { client, holder, batch, relay } = request
  const state = await readBatch(client, batch)
  const paid = payees && (await checkPayouts({ ...request, payees }, state))
  const unpaid = state.payouts.filter(({ status }) => status === 'ready' || status === 'failed')
  const known = payees ? await recognize({ ...request, payees }, unpaid) : unpaid.flatMap(lineOf)
  const byPayout = new Map(known.map((line) => [line.payout, line]))
  const lines = unpaid.map((payout) => {
    if (paid?.has(payout.id)) throw new RunError('already-paid', `payout ${payout.id} is paid on the ledger: cancel it`)
    const line = byPayout.get(payout.id)
    if (line) return line
    const lacking = payees ? 'seal of your own for this amount and this relay' : 'seal'
    throw new RunError('not-started', `payout ${payout.id} has no address or no ${lacking}`)
  })
  await requireTrusted(relay, { channels: lines.map(({ channel }) => channel) })
  const manifest = await manifestOf(request, lines)
  if (!manifest) throw new RunError('not-started', 'a channel has no delegation of this account')
  return JSON.stringify({ signature: await signManifest(signerOf(holder.signer), manifest) })
}

async function checkPayouts(request: ManifestRequest & Pick<RunRequest, 'payees'>, state: BatchState) {
  requireSame(request, state)
  const counted = countedOf(request, state)
  const { paid } = await findPaidBefore(request, counted)
  notePayouts(request, counted)
  return paid
}

function lineOf({ id, contractorId, address, encryptedAmount = '' }: BatchState['payouts'][number]): Line[] {
  const channel = readSeal(encryptedAmount)?.spender
  if (address === undefined || channel === undefined) return []
  return [{ payout: id, contractor: contractorId, address, channel, amount: 0n, encryptedAmount }]
}
