import { readOwnDelegations } from '#lib/wallet/escrow.ts'
import { hashSeal, type Manifest } from '#lib/wallet/manifest.ts'
import { requireOwnDelegation } from './run-delegations.ts'
import { RunError } from './run-error.ts'
import type { Line, RunRequest } from './run-request.ts'

/**
 * The manifest for these lines, with the delegations on the ledger, which are noted. Undefined if one is missing.
 * @throws RunError `channel-busy` if a delegation is for another unfinished batch, `list-differs` for a payee with two lines
 */
export async function manifestOf(
  request: Pick<RunRequest, 'client' | 'deployment' | 'holder' | 'batch' | 'notes'>,
  lines: readonly Line[],
): Promise<Manifest | undefined> {
  const { deployment, holder, batch, notes } = request
  if (new Set(lines.map(({ address }) => address)).size < lines.length) {
    throw new RunError('list-differs', 'a payee has two payouts')
  }
  const channels = [...new Set(lines.map(({ channel }) => channel))]
  const { delegations } = await readOwnDelegations(deployment, holder, channels)
  if (delegations.length < channels.length) return undefined
  for (const { spender: channel, liveUntilLedger } of delegations) {
    await requireOwnDelegation(request, { channel, liveUntilLedger })
    notes.addDelegation({ batch, channel, liveUntilLedger })
  }
  return {
    passphrase: deployment.passphrase,
    token: deployment.token,
    batch,
    account: holder.address,
    delegations: delegations.map(({ spender: channel, liveUntilLedger }) => ({ channel, liveUntilLedger })),
    payouts: lines.map(({ payout, contractor, address, channel, encryptedAmount }) => {
      return { payout, contractor, address, channel, sealHash: hashSeal(encryptedAmount) }
    }),
  }
}
