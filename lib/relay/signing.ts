import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { log } from '#lib/observability/log.ts'
import { buildTransfer, type SignedSpending } from '#lib/wallet/calls.ts'
import type { ContractFailure } from '#lib/wallet/transaction.ts'
import { openBalance, readBalance } from './balance.ts'
import { findChannels } from './channel-record.ts'
import { diagnose, isRegistered } from './diagnosis.ts'
import { type Item, storeSigned } from './items.ts'
import type { Channel, Relay } from './relay.ts'
import { sealOpening, unsealAmount } from './sealing.ts'

/**
 * What came of making a transfer for an item. `signed`: it is stored. `unpayable`: the item is at fault. `unfit`: the
 * channel is. `stale`: the channel's balance has moved on meanwhile. `moved`: the item has. `sealed`: this relay has not
 * the key that the amount was sealed to.
 */
export type Signing =
  | { kind: 'signed'; item: Item }
  | { kind: 'unpayable'; error: string }
  | { kind: 'unfit'; problem: ChannelProblem }
  | { kind: 'stale' }
  | { kind: 'moved' }
  | { kind: 'sealed' }

/**
 * Makes the transfer that is to pay an item, under a fresh salt, and stores it before anybody else sees it.
 * Throws what the transport throws: then nothing has happened.
 */
export async function signItem(relay: Relay, channel: Channel, item: Item): Promise<Signing> {
  const to = item.recipient ?? (await pickOther(relay, channel, item))
  if (!to) return { kind: 'unpayable', error: 'there is no other channel to pay' }
  const amount = await unsealAmount(relay.key, item, item.sealedAmount ?? '').catch(() => undefined)
  if (amount === undefined) return { kind: 'sealed' }
  try {
    const opening = await openBalance(relay, channel, amount)
    if (!opening) return { kind: 'unfit', problem: 'balance' }
    const deployment = await relay.deployment()
    const build = (from: typeof opening) =>
      buildTransfer(deployment, channel, { to, amount, opening: from }, { seconds: relay.times.validity })
    const built = await build(opening).catch(async (error: unknown) => {
      if (!isConflict(error)) throw error
      // The balance has moved on since it was kept: another relay has paid with it, or it was used elsewhere.
      return await build((await readBalance(relay, channel)).spendable)
    })
    return await store(relay, item, built)
  } catch (error) {
    return await judge(relay, { channel: channel.address, to }, error)
  }
}

async function store(relay: Relay, item: Item, built: SignedSpending): Promise<Signing> {
  const sealedOpening = await sealOpening(publicHalf(relay.key), item.channel ?? '', built.next)
  const signed = { innerHash: built.hash, signedXdr: built.signedXdr, sealedOpening }
  const stored = await storeSigned(await relay.database(), item, signed)
  return stored ? { kind: 'signed', item: stored } : { kind: 'moved' }
}

/** Whose fault it is that no transfer could be made. What is nobody's is thrown on. */
async function judge(relay: Relay, { channel, to }: { channel: string; to: string }, error: unknown): Promise<Signing> {
  if (error instanceof Refusal && error.code === 'unavailable') throw error
  const problem = await diagnose(relay, channel)
  if (problem) return { kind: 'unfit', problem }
  if (!(await isRegistered(relay, to))) return { kind: 'unpayable', error: 'the recipient is not registered' }
  if (isConflict(error)) return { kind: 'unfit', problem: 'history' }
  if (!(error instanceof Refusal) || error.code === 'not-wired') throw error
  // What the channel has received cannot be made spendable: for want of XLM, as a rule. Others may well pay.
  if (error.code === 'failed') return { kind: 'unfit', problem: 'balance' }
  const failure = error.code === 'refused' ? (error.cause as ContractFailure | undefined) : undefined
  // The balance of the channel changed between reading and simulating.
  if (failure?.contractError === STALE_PROOF) return { kind: 'stale' }
  if (error.code === 'refused' && error.cause === undefined) return { kind: 'unfit', problem: 'balance' }
  log('info', 'item cannot be paid', { channel, code: error.code, contractError: failure?.contractError })
  return { kind: 'unpayable', error: `the transfer would fail: contract error ${failure?.contractError ?? error.code}` }
}

const STALE_PROOF = 3506
const isConflict = (error: unknown) => error instanceof Refusal && error.code === 'conflict'

/** A channel that no relay has spoken of for so long (ms) may be nobody's any more. */
const FORSAKEN = 600_000

/** Another channel of the same token that is registered as far as is known. */
async function pickOther(relay: Relay, channel: Channel, { position }: Item): Promise<string | undefined> {
  const since = relay.now().getTime() - FORSAKEN
  const others = (await findChannels(await relay.database(), relay.token)).filter(
    ({ address, problem, seenAt }) =>
      address !== channel.address && seenAt.getTime() >= since && (problem === null || problem === 'balance'),
  )
  return others[position % others.length]?.address
}
