import { hashSeal, type Manifest, signManifest } from '#lib/wallet/manifest.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { readOwnDelegations } from './delegations.ts'
import { type BatchState, readBatch } from './payees.ts'
import { requireTrusted } from './relay-document.ts'
import type { Line, RunRequest } from './run-request.ts'
import { recognize } from './run-seals.ts'

/** The manifest of these lines, with the delegations that the ledger has. Undefined if one is missing. */
export async function manifestOf(
  { network, holder, batch }: Pick<RunRequest, 'network' | 'holder' | 'batch'>,
  lines: readonly Line[],
): Promise<Manifest | undefined> {
  const channels = [...new Set(lines.map(({ channel }) => channel))]
  const { delegations } = await readOwnDelegations(network, holder, channels)
  if (delegations.length < channels.length) return undefined
  return {
    passphrase: network.passphrase,
    token: network.token,
    batch,
    account: holder.address,
    delegations: delegations.map(({ spender: channel, liveUntilLedger }) => ({ channel, liveUntilLedger })),
    payouts: lines.map(({ payout, contractor, address, channel, encryptedAmount }) => {
      return { payout, contractor, address, channel, sealHash: hashSeal(encryptedAmount) }
    }),
  }
}

/**
 * The body of POST /batches/{id}/run, signed for the batch as it is. Without own seals, payees and seals are those that the
 * API has.
 * @throws Error if a delegation is missing, or a seal is not the employer's own
 */
export async function signRun(
  request: Pick<RunRequest, 'network' | 'client' | 'holder' | 'relay' | 'batch'>,
  own?: Pick<RunRequest, 'payees' | 'seals'>,
): Promise<string> {
  const { client, holder, batch, relay } = request
  const { payouts } = await readBatch(client, batch)
  const lines = payouts.flatMap((payout): Line[] => {
    if (payout.status !== 'ready' && payout.status !== 'failed') return []
    const line = own ? recognize({ ...request, ...own }, payout) : lineOf(payout)
    if (line) return [line]
    throw new Error(`payout ${payout.id} has no address or no seal${own ? ' of your own for this amount' : ''}`)
  })
  await requireTrusted(relay, { channels: lines.map(({ channel }) => channel) })
  const manifest = await manifestOf(request, lines)
  if (!manifest) throw new Error('a channel has no delegation of this account')
  return JSON.stringify({ signature: await signManifest(keypairSigner(holder.signer), manifest) })
}

function lineOf({ id, contractorId, address, encryptedAmount = '' }: BatchState['payouts'][number]): Line | undefined {
  const channel = readSeal(encryptedAmount)?.spender
  if (address === undefined || channel === undefined) return undefined
  return { payout: id, contractor: contractorId, address, channel, amount: 0n, encryptedAmount }
}
