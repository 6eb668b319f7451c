import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { readAccount } from '#lib/stellar/accounts.ts'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import { readEntries } from '#lib/stellar/entries.ts'
import type { Relay } from './relay.ts'

/** A sequence number can rise no further. */
const LAST_SEQUENCE = 2n ** 63n - 1n

/**
 * What the ledger says is wrong with a channel, be it ever so full; undefined when nothing is.
 * @throws Refusal `unavailable`
 */
export async function diagnose(
  relay: Pick<Relay, 'network' | 'token'>,
  address: string,
): Promise<ChannelProblem | undefined> {
  const { account } = await readAccount(relay.network.server, address)
  if (!account) return 'account'
  if (account.seqNum >= LAST_SEQUENCE) return 'sequence'
  return (await isRegistered(relay, address)) ? undefined : 'registration'
}

/** Whether an address (G… or C…) can be paid. @throws Refusal `unavailable` */
export async function isRegistered(relay: Pick<Relay, 'network' | 'token'>, address: string): Promise<boolean> {
  const { entries } = await readEntries(relay.network.server, [accountKey(relay.token, address)])
  return entries[0] !== undefined
}
