import { type BatchState, readBatch } from '#lib/sdk/payees.ts'
import { RunError } from '#lib/sdk/run-error.ts'
import { manifestOf } from '#lib/sdk/run-manifest.ts'
import type { Line, RunRequest } from '#lib/sdk/run-request.ts'
import { recognize } from '#lib/sdk/run-seals.ts'
import { signManifest } from '#lib/wallet/manifest.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import { signerOf } from '#lib/wallet/signer.ts'
import { requireTrusted } from '#lib/wallet/trusted-relay.ts'

/**
 * The body of POST /batches/{id}/run, with a signature of the batch in its current state. Without `own`, the payees and
 * seals are taken from the API.
 * @throws RunError `not-started` if a delegation is missing, or a seal is not the employer's own
 */
export async function signRun(
  request: Pick<RunRequest, 'deployment' | 'client' | 'holder' | 'relay' | 'batch'>,
  own?: Pick<RunRequest, 'payees' | 'seals'>,
): Promise<string> {
  const { client, holder, batch, relay } = request
  const { payouts } = await readBatch(client, batch)
  const lines = payouts.flatMap((payout): Line[] => {
    if (payout.status !== 'ready' && payout.status !== 'failed') return []
    const line = own ? recognize({ ...request, ...own }, payout) : lineOf(payout)
    if (line) return [line]
    const lacking = own ? 'seal of your own for this amount' : 'seal'
    throw new RunError('not-started', `payout ${payout.id} has no address or no ${lacking}`)
  })
  await requireTrusted(relay, { channels: lines.map(({ channel }) => channel) })
  const manifest = await manifestOf(request, lines)
  if (!manifest) throw new RunError('not-started', 'a channel has no delegation of this account')
  return JSON.stringify({ signature: await signManifest(signerOf(holder.signer), manifest) })
}

function lineOf({ id, contractorId, address, encryptedAmount = '' }: BatchState['payouts'][number]): Line | undefined {
  const channel = readSeal(encryptedAmount)?.spender
  if (address === undefined || channel === undefined) return undefined
  return { payout: id, contractor: contractorId, address, channel, amount: 0n, encryptedAmount }
}
