import { type ClientNetwork, sendAndWait } from '#lib/cli/client/participants.ts'
import { readDelegations, readParties } from '#lib/wallet/account.ts'
import { buildDelegation, signSpending } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { openAllowance, proveDelegatedTransfer } from '#lib/wallet/spending.ts'

/** Lets `spender` pay `amount` (base units) from the owner's balance. */
export async function delegate(
  network: ClientNetwork,
  owner: Holder & { opening: Opening },
  spender: string,
  amount: bigint,
): Promise<void> {
  const { sequence } = await network.rpc.getLatestLedger()
  const delegation = { spender, amount, liveUntilLedger: sequence + 100_000, opening: owner.opening }
  await sendAndWait(network, (await buildDelegation(network, owner, delegation)).signedXdr)
}

/** The channel pays `amount` from the owner's delegation. Resolves to the hash. */
export async function payFromDelegation(
  network: ClientNetwork,
  { owner, channel, to, amount }: { owner: Holder; channel: Holder; to: string; amount: bigint },
): Promise<string> {
  const { delegations } = await readDelegations(network, [{ owner: owner.address, spender: channel.address }])
  const allowance = delegations[0] && openAllowance(channel, owner.address, delegations[0])
  if (!allowance) throw new Error('there is no allowance')
  const party = await readParties(network, [owner.address, to])
  const proved = await proveDelegatedTransfer(network, channel, allowance, {
    to,
    amount,
    viewingKey: party(to).account.viewingKey,
    auditorRecipient: party(to).auditor,
    auditorSender: party(owner.address).auditor,
  })
  const { signedXdr, hash } = await signSpending(network, channel, proved)
  await sendAndWait(network, signedXdr)
  return hash
}
