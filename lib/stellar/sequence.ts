import { readAccount } from './accounts.ts'
import type { Network } from './network.ts'

/**
 * The last sequence number that the account at `address` has used, undefined without an account, and the ledger of
 * the answer.
 * @throws Refusal `unavailable`
 */
export async function readSequence(
  network: Network,
  address: string,
): Promise<{ sequence: bigint | undefined; latestLedger: number }> {
  const { account, latestLedger } = await readAccount(network.server, address)
  return { sequence: account?.seqNum, latestLedger }
}
