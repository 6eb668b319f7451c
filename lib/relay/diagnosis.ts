import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { readAccounts } from '#lib/stellar/account.ts'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import { readEntries } from '#lib/stellar/entries.ts'
import { isConflict, opensBalance, readBalance } from './balance.ts'
import { type ChannelRecord, findChannels, noteProblem } from './channels.ts'
import type { Channel, Relay } from './relay.ts'

/** A sequence number can rise no further. */
const LAST_SEQUENCE = 2n ** 63n - 1n

/**
 * The fault of each of these accounts by the ledger, its balance apart; undefined for an account without one. Two calls of the
 * RPC for all of them.
 * @throws Refusal `unavailable`
 */
async function diagnoseAll(
  { network, token }: Pick<Relay, 'network' | 'token'>,
  addresses: readonly string[],
): Promise<(ChannelProblem | undefined)[]> {
  if (addresses.length === 0) return []
  const keys = addresses.map((address) => accountKey(token, address))
  const [{ accounts }, { entries }] = await Promise.all([
    readAccounts(network.server, addresses),
    readEntries(network.server, keys),
  ])
  return addresses.map((_, index) => {
    const account = accounts[index]
    if (!account) return 'account'
    if (account.seqNum >= LAST_SEQUENCE) return 'sequence'
    return entries[index] === undefined ? 'registration' : undefined
  })
}

/** The same of one account. @throws Refusal `unavailable` */
export async function diagnose(
  relay: Pick<Relay, 'network' | 'token'>,
  address: string,
): Promise<ChannelProblem | undefined> {
  return (await diagnoseAll(relay, [address]))[0]
}

/** Whether an address (G… or C…) can be paid. @throws Refusal `unavailable` */
export async function isRegistered(relay: Pick<Relay, 'network' | 'token'>, address: string): Promise<boolean> {
  const { entries } = await readEntries(relay.network.server, [accountKey(relay.token, address)])
  return entries[0] !== undefined
}

/**
 * Asks the ledger how the relay's channels are, and notes the answer: a fault that is gone is cleared here. Reads what has
 * happened to a free channel while the RPC still has it.
 * @throws Refusal `unavailable`
 */
export async function checkChannels(relay: Relay): Promise<void> {
  const { token, channels } = relay
  const known = new Map((await findChannels(await relay.database(), token)).map((record) => [record.address, record]))
  const problems = await diagnoseAll(
    relay,
    channels.map(({ address }) => address),
  )
  for (const [index, channel] of channels.entries()) {
    if (relay.signal.aborted) return
    const record = known.get(channel.address)
    const problem = problems[index]
    if (problem || !record) await noteProblem(relay, channel.address, problem ?? null)
    else if (record.itemJob === null && isBalanceDue(relay, record)) await checkBalance(relay, channel, record)
    else if (record.problem !== 'balance' && record.problem !== 'history') {
      await noteProblem(relay, channel.address, null)
    }
  }
}

/** Nothing but its events tells what a channel owns. */
function isBalanceDue({ times, now }: Relay, { problem, readAt }: ChannelRecord): boolean {
  return problem !== null || readAt === null || readAt.getTime() + times.refresh * 1000 <= now().getTime()
}

async function checkBalance(relay: Relay, channel: Channel, record: ChannelRecord): Promise<void> {
  const balance = await readBalance(relay, channel).catch((error: unknown) => {
    if (isConflict(error)) return undefined
    throw error
  })
  // What opens the spendable balance may be known though the events are lost, and until that changes the channel can pay.
  const isLost = !balance && !(await opensBalance(relay, channel, record))
  const isEmpty = balance && balance.spendable.value + balance.receiving.value === 0n
  const problem = isLost ? 'history' : isEmpty ? 'balance' : null
  await noteProblem(relay, channel.address, problem)
}
