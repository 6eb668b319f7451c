import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { ConfigurationError } from '#lib/config/environment.ts'
import { type Faucet, fund } from '#lib/faucet/faucet.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { readConfidentialAccounts } from '#lib/wallet/account.ts'
import { buildRegister } from '#lib/wallet/calls.ts'
import { readBalance } from './balance.ts'
import { announceChannels, recordProblem } from './channel-state.ts'
import { diagnose } from './check.ts'
import { isLineError } from './line-error.ts'
import { submitOwnCall } from './own-call.ts'
import { type Channel, type Relay, readOnce } from './relay.ts'

/** Base units that a channel receives by default. */
export const CHANNEL_FUNDS = 1_000_000_0000000n

/** How channels are prepared to pay. */
interface Preparation {
  relay: Relay
  /** funds the channels; undefined if the service has none */
  faucet: Faucet | undefined
  say(channel: string, step: string): void
  /** id of the auditor under which channels are registered */
  auditorId?: number
  /** base units that a channel receives as soon as it has less than a tenth of them */
  funds?: bigint
}

/** How long the faucet may take for one channel (ms): it serves the channels one at a time. */
const FAUCET_PATIENCE_MS = 120_000

/** How long a channel may make no progress (ms): a deposit of a killed process is open for three minutes, and a node may lag by one. */
const STALL_MS = 300_000
const PAUSE_MS = 2_000

const INFO = z.object({ friendbotUrl: z.string().optional() })

/**
 * Prepares every channel of the relay to pay: an account with XLM from friendbot, registered with the token, and with a confidential
 * balance from the faucet. Finished steps are skipped, so it can be repeated, even after an interruption. Waits for an RPC that lags,
 * and for a deposit that another process began.
 * @throws ConfigurationError where the network has no friendbot, or the service no faucet; the last failure of a channel that makes no
 *   progress for five minutes
 */
export async function prepareChannels(preparation: Preparation): Promise<void> {
  const { relay } = preparation
  await announceChannels(relay)
  await Promise.all(relay.channels.map((channel) => prepareInSteps(preparation, channel)))
}

async function prepareInSteps(preparation: Preparation, channel: Channel): Promise<void> {
  const { relay, say } = preparation
  let step = ''
  let obstacle = ''
  let progressAt = performance.now()
  const sayStep = (address: string, next: string) => {
    if (next !== step) {
      say(address, next)
      progressAt = performance.now()
    }
    step = next
  }
  for (;;) {
    try {
      return await prepareChannel({ ...preparation, say: sayStep }, channel)
    } catch (error) {
      const isFinal = error instanceof ConfigurationError || isLineError(error, 'channel-moved')
      const isStalled = performance.now() - progressAt > STALL_MS
      if (isFinal || isStalled || relay.signal.aborted) throw error
      const isCooling = error instanceof Refusal && error.code === 'faucet-cooldown'
      const next = isCooling ? 'an earlier deposit is not decided yet' : reasonOf(error)
      if (next !== obstacle) say(channel.address, `waiting: ${next}`)
      obstacle = next
      await setTimeout(PAUSE_MS)
    }
  }
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** `prepareChannels` for one, but fails where that waits: the caller repeats it. @throws also LedgerError, Refusal, WalletError, LineError */
export async function prepareChannel(preparation: Preparation, channel: Channel): Promise<void> {
  const { relay, say, auditorId = 0 } = preparation
  const { address } = channel
  let problem = await diagnose(relay, address)
  if (problem) await recordProblem(relay, address, problem)
  if (problem === 'account') {
    say(address, 'asking friendbot for an account')
    await requestXlm(relay, address)
    problem = await diagnose(relay, address)
  }
  if (problem === 'account') throw new LedgerError('unavailable', 'the RPC does not show the new account yet')
  if (problem === 'registration') {
    say(address, 'registering with the token')
    const ledger = await relay.ledger.readLatest()
    const signed = await buildRegister(await relay.deployment(), channel, { auditorId })
    await submitOwnCall(relay, address, { kind: 'register', signed, ledger })
  }
  await fillUp(preparation, channel)
  await recordProblem(relay, address, null)
  say(address, 'ready')
}

/** The same relay, which announces the number of each proof that a registration needs. */
export function announceRegistrations(relay: Relay, say: (line: string) => void): Relay {
  const addresses = relay.channels.map(({ address }) => address)
  const deployment = readOnce(async () => {
    const deployed = await relay.deployment()
    const registered = await readConfidentialAccounts(relay.network.server, relay.token, addresses)
    return { ...deployed, prover: announceProofs(deployed.prover, addresses.length - registered.size, say) }
  })
  return { ...relay, deployment }
}

/** Funds a channel that has less than a tenth of `funds`. A payment merges it: a running relay may be using the next number. */
async function fillUp({ relay, faucet, say, funds = CHANNEL_FUNDS }: Preparation, channel: Channel): Promise<void> {
  const { spendable, receiving } = await readBalance(relay, channel)
  if (spendable.value + receiving.value >= funds / 10n) return
  if (!faucet) throw new ConfigurationError('FAUCET_SEED', 'channels are funded by the faucet, and none is configured')
  say(channel.address, 'asking the faucet for a confidential balance')
  const rules = { amount: funds, coolDown: 0, patience: FAUCET_PATIENCE_MS }
  await fund(await relay.database(), { ...faucet, rules }, channel.address)
}

async function requestXlm({ network }: Relay, address: string): Promise<void> {
  const { friendbotUrl } = await network.call('getNetwork', {}, INFO)
  const remedy = `the network has no friendbot: create the account ${address} yourself`
  if (!friendbotUrl) throw new ConfigurationError('CHANNEL_SEEDS', remedy)
  await requestFriendbot(friendbotUrl, address)
}
