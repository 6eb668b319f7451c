import { sql } from 'drizzle-orm'
import { expect, onTestFinished, test } from 'vitest'
import { claimGrant } from '#lib/faucet/grants.ts'
import { CHANNEL_FUNDS, prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { LAG } from '../support/lagging-nodes.ts'
import { openRelayService } from './relay-service.ts'

test('waits for the deposit of a process that was killed, and continues', async () => {
  const fixture = await openRelayService({ channels: 1, prepared: 0 })
  onTestFinished(fixture.close)
  const relay = await composeRelay(fixture.running)
  const [channel] = relay.channels
  if (!channel) throw new Error('no channel')
  await claimGrant(fixture.db, { account: channel.address, amount: CHANNEL_FUNDS, coolDown: 0 })
  // A claim without a deposit expires after three minutes; this one in a few seconds.
  await fixture.db.execute(sql`UPDATE grants SET claimed_at = claimed_at - interval '170 seconds'`)
  const steps: string[] = []
  await prepareChannels({ relay, faucet: fixture.running.faucet, say: (_, step) => steps.push(step) })
  expect(steps.some((step) => step.startsWith('waiting: '))).toBe(true)
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
