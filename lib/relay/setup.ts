import { z } from 'zod'
import { type Faucet, fund } from '#lib/faucet/faucet.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { readConfidentialAccounts } from '#lib/wallet/account.ts'
import { buildMerge, buildRegister } from '#lib/wallet/calls.ts'
import { readBalance } from './balance.ts'
import { announceChannels, noteProblem } from './channels.ts'
import { diagnose } from './diagnosis.ts'
import { submitOwnCall } from './own-call.ts'
import { askOnce, type Channel, type Relay } from './relay.ts'

/** Base units that a channel receives by default. */
export const CHANNEL_FUNDS = 1_000_000_0000000n

/** How channels are made fit to pay. */
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
const FAUCET_PATIENCE = 120_000

const INFO = z.object({ friendbotUrl: z.string().optional() })

/**
 * Makes every channel of the relay fit to pay: an account with XLM from friendbot, registered with the token, and with
 * a spendable confidential balance from the faucet. Steps that are done already are skipped, so it may be run again,
 * also after an interruption.
 * @throws LedgerError `unavailable`, also where the network has no friendbot, or the service no faucet
 */
export async function prepareChannels(preparation: Preparation): Promise<void> {
  const { relay } = preparation
  await announceChannels(relay)
  await Promise.all(relay.channels.map((channel) => prepareChannel(preparation, channel)))
}

/** Makes one channel fit to pay, as `prepareChannels` does. */
export async function prepareChannel(preparation: Preparation, channel: Channel): Promise<void> {
  const { relay, say, auditorId = 0 } = preparation
  const { address } = channel
  let problem = await diagnose(relay, address)
  if (problem) await noteProblem(relay, address, problem)
  if (problem === 'account') {
    say(address, 'asking friendbot for an account')
    await requestXlm(relay, address)
    problem = await diagnose(relay, address)
  }
  if (problem === 'registration') {
    say(address, 'registering with the token')
    await submitOwnCall(
      relay.network,
      await buildRegister(await relay.deployment(), channel, { auditorId }),
      relay.signal,
    )
  }
  await fillUp(preparation, channel)
  await noteProblem(relay, address, null)
  say(address, 'ready')
}

/** The same relay, which says of each registration that it proves which of how many it is. */
export function announceRegistrations(relay: Relay, say: (line: string) => void): Relay {
  const addresses = relay.channels.map(({ address }) => address)
  const deployment = askOnce(async () => {
    const deployed = await relay.deployment()
    const registered = await readConfidentialAccounts(relay.network.server, relay.token, addresses)
    return { ...deployed, prover: announceProofs(deployed.prover, addresses.length - registered.size, say) }
  })
  return { ...relay, deployment }
}

async function fillUp({ relay, faucet, say, funds = CHANNEL_FUNDS }: Preparation, channel: Channel): Promise<void> {
  const before = await readBalance(relay, channel)
  const received = before.receiving.value
  if (before.spendable.value + received < funds / 10n) {
    if (!faucet) throw new LedgerError('unavailable', 'channels are funded by the faucet, and none is configured')
    say(channel.address, 'asking the faucet for a confidential balance')
    const rules = { amount: funds, coolDown: 0, patience: FAUCET_PATIENCE }
    await fund(await relay.database(), { ...faucet, rules }, channel.address)
  } else if (received === 0n) return
  say(channel.address, 'making it spendable')
  const balance = await readBalance(relay, channel)
  const merge = await buildMerge(await relay.deployment(), channel.signer, balance)
  await submitOwnCall(relay.network, merge, relay.signal)
  await readBalance(relay, channel)
}

async function requestXlm({ network }: Relay, address: string): Promise<void> {
  const { friendbotUrl } = await network.call('getNetwork', {}, INFO)
  if (!friendbotUrl) throw new LedgerError('unavailable', 'the network has no friendbot: create the account yourself')
  await requestFriendbot(friendbotUrl, address)
}
