import { setTimeout } from 'node:timers/promises'
import { readAccount } from '#lib/stellar/account.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'

/** How often to read the balance after friendbot's response: the RPC may lag. */
const ATTEMPTS = 30

export interface Funder {
  network: Network
  friendbotUrl: string | undefined
}

/** XLM of an account (G…), in stroops; undefined without an account. @throws LedgerError `unavailable` */
export async function readXlm({ network }: Pick<Funder, 'network'>, address: string): Promise<bigint | undefined> {
  return (await readAccount(network.server, address)).account?.balance
}

/**
 * Has friendbot fund an account that does not exist or has less than `least` stroops. Resolves to whether it did.
 * @throws LedgerError `unavailable`, including when the network has no friendbot
 */
export async function ensureXlm(funder: Funder, address: string, least: bigint): Promise<boolean> {
  const before = await readXlm(funder, address)
  if (before !== undefined && before >= least) return false
  if (!funder.friendbotUrl) {
    throw new LedgerError('unavailable', `the network has no friendbot: fund ${address} yourself`)
  }
  // Friendbot refuses one of two concurrent requests for an account, but the account is funded.
  const refusal = await requestFriendbot(funder.friendbotUrl, address).then(
    () => undefined,
    (error: unknown) => error,
  )
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if ((await readXlm(funder, address)) !== before) return true
    if (refusal) throw refusal
    await setTimeout(funder.network.pollMs)
  }
  throw new LedgerError('unavailable', `friendbot responded, but the balance of ${address} is unchanged`)
}
