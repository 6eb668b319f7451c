import { readOwnDelegations } from '#lib/wallet/escrow.ts'
import { hashSeal, type Manifest } from '#lib/wallet/manifest.ts'
import type { Line, RunRequest } from './run-request.ts'

/** The manifest for these lines, with the delegations on the ledger. Undefined if one is missing. */
export async function manifestOf(
  { deployment, holder, batch }: Pick<RunRequest, 'deployment' | 'holder' | 'batch'>,
  lines: readonly Line[],
): Promise<Manifest | undefined> {
  const channels = [...new Set(lines.map(({ channel }) => channel))]
  const { delegations } = await readOwnDelegations(deployment, holder, channels)
  if (delegations.length < channels.length) return undefined
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
