import { expect, onTestFinished, test } from 'vitest'
import { openGranting } from '#lib/faucet/deposit.ts'
import { CHANNEL_FUNDS, prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { findOpenTransfer } from '#lib/transfers/rows.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { LAG } from '../support/lagging-nodes.ts'
import { openRelayService } from './relay-service.ts'

test('waits for the deposit of a process that was killed, and continues', async () => {
  const fixture = await openRelayService({ channels: 1, prepared: 0 })
  onTestFinished(fixture.close)
  const relay = await composeRelay(fixture.running)
  const [channel] = relay.channels
  const { faucet } = fixture.running
  if (!channel || !faucet) throw new Error('no channel or no faucet')
  // The RPC does not answer the process that records the deposit.
  const { network, database } = fixture.running
  const silent = { ...network, call: () => new Promise<never>(() => undefined) }
  const tracker = openTracker({ network: silent, database, now: () => new Date() })
  const dying = openGranting({ ...faucet, tracker })
  await prepareChannels({ relay, faucet: undefined, say: () => undefined }).catch(() => undefined)
  void dying.grant(fixture.db, { account: channel.address, amount: CHANNEL_FUNDS, coolDown: 0 }, 60_000)
  await expect.poll(() => findOpenTransfer(fixture.db, faucet.keypair.publicKey())).toBeDefined()
  const steps: string[] = []
  await prepareChannels({ relay, faucet, say: (_, step) => steps.push(step) })
  expect(steps.at(-1)).toBe('ready')
  const { receiving } = await syncBalance(fixture.ledger.network, channel)
  expect(receiving.value).toBe(CHANNEL_FUNDS)
})

test('prepares every channel while one node of two lags', async () => {
  const fixture = await openRelayService({ channels: 2, prepared: 0, lag: LAG })
  onTestFinished(fixture.close)
  const relay = await composeRelay(fixture.running)
  await prepareChannels({ relay, faucet: fixture.running.faucet, say: () => undefined })
  const channels = await fixture.db.query.relayChannels.findMany()
  expect(channels.map(({ problem }) => problem)).toEqual([null, null])
})
