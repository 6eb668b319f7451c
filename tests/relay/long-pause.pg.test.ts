import { TransactionBuilder } from '@stellar/stellar-sdk'
import { afterAll, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { readBalance } from '#lib/relay/balance.ts'
import type { Channel } from '#lib/relay/relay.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import { openRelayService } from './relay-service.ts'

const HISTORY = 300
const DEPOSIT = 5_0000000n

const service = await openRelayService({ channels: 1, closeMs: 0, historyLedgers: HISTORY })
afterAll(service.close)
const relay = await composeRelay(service.running)
const [channel] = relay.channels as [Channel]

async function receive(): Promise<void> {
  const { network, devnet } = service.ledger
  const { issuer } = devnetKeys('Standalone Network ; February 2017')
  const { signedXdr } = await buildDeposit(network, issuer, { to: channel.address, amount: DEPOSIT })
  const { hash } = await network.rpc.sendTransaction(TransactionBuilder.fromXdr(signedXdr, network.passphrase))
  const closing = setInterval(devnet.closeLedger, 20)
  await network.rpc.pollTransaction(hash, { attempts: 500, sleepStrategy: () => 20 })
  clearInterval(closing)
}

/** The RPC drops everything that happened so far; the service has archived it. */
async function pause(): Promise<void> {
  const { archive } = service.running
  if (!archive) throw new Error('there is no archive')
  for (let closed = 0; closed <= HISTORY; closed += 1) {
    if (closed % 50 === 0) await ingest(archive)
    service.ledger.devnet.closeLedger()
  }
}

test('reads what its channel received before a pause that outlasted the RPC’s history', async () => {
  const before = await readBalance(relay, channel)
  expect(before.spendable.value).toBe(CHANNEL_FUNDS)
  await receive()
  await pause()
  expect((await readBalance(relay, channel)).receiving.value).toBe(before.receiving.value + DEPOSIT)
})

test('reads its channel from the beginning if nothing was stored', async () => {
  const before = await readBalance(relay, channel)
  await pause()
  await service.db.update(relayChannels).set({ sealedBalance: null, sealedOpening: null })
  expect(await readBalance(relay, channel)).toMatchObject({ spendable: before.spendable, receiving: before.receiving })
})
