import { formatUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { readOwnDelegations } from '#lib/wallet/escrow.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import type { RunRequest } from './run-request.ts'

/**
 * Requires that the employer can pay what is owed, before the batch is locked: from its balance, which a delegation merges, and from
 * what its delegations to the relay still hold. @throws WalletError `balance-too-low`
 */
export async function requireBalance(
  { deployment, holder, relay }: RunRequest,
  owed: RunRequest['payees'],
): Promise<void> {
  const needed = owed.reduce((sum, { amount }) => sum + amount, 0n)
  const { spendable, receiving } = await syncBalance(deployment, holder)
  const { delegations } = await readOwnDelegations(deployment, holder, relay?.channels ?? [])
  const available = delegations.reduce((sum, { left = 0n }) => sum + left, spendable.value + receiving.value)
  requireCovered(needed, available)
}

/** Both in base units. @throws WalletError `balance-too-low` */
export function requireCovered(needed: bigint, available: bigint): void {
  if (available >= needed) return
  const words = `the list needs ${formatUnits(needed)}, and ${formatUnits(available)} is available`
  throw new WalletError('balance-too-low', words, { needed, available })
}
