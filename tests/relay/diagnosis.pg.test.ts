import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, expect, test } from 'vitest'
import { announceChannels, findChannels } from '#lib/relay/channel-state.ts'
import { checkChannels, diagnose, isRegistered } from '#lib/relay/check.ts'
import type { Channel, Relay } from '#lib/relay/relay.ts'
import { openAccounts } from '#lib/stellar/account.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'
import { accountEntry, startFakeRpc, TOKEN } from '../support/fake-rpc.ts'
import { NOW, openLineFixture } from './line-fixture.ts'

const VIEWING_KEY = 'ab'.repeat(64)

const rpc = await startFakeRpc()
const fixture = await openLineFixture()
afterAll(rpc.close)
afterAll(fixture.close)

/** The part of a relay that reads these accounts from the ledger. */
function relayOf(addresses: readonly string[]): Relay {
  const { name, url: rpcUrl, passphrase } = { name: 'local', ...rpc }
  const network = { ...openNetwork({ name, passphrase, rpcUrl, pollMs: 50 }), server: rpc.server }
  const readAccount = openAccounts(network)
  const part: Partial<Relay> = {
    network,
    sponsor: { tracker: { readAccount } } as Sponsor,
    memory: { readAccount } as Relay['memory'],
    token: TOKEN,
    database: fixture.database.store.database,
    channels: addresses.map((address) => ({ address }) as Channel),
    signal: new AbortController().signal,
    now: () => NOW,
  }
  return part as Relay
}

function makeAccount(): string {
  const address = Keypair.random().publicKey()
  rpc.accounts.set(address, accountEntry(address))
  return address
}

test('does not take an entry of another format for a registration', async () => {
  const [registered, unregistered, confused] = [makeAccount(), makeAccount(), makeAccount()]
  rpc.register(registered, VIEWING_KEY)
  rpc.confuse(confused)
  const relay = relayOf([])
  expect(await diagnose(relay, registered)).toBeUndefined()
  expect(await diagnose(relay, unregistered)).toBe('registration')
  expect([await isRegistered(relay, registered), await isRegistered(relay, unregistered)]).toEqual([true, false])
  await expect(diagnose(relay, confused)).rejects.toMatchObject({ code: 'foreign-contract' })
  await expect(isRegistered(relay, confused)).rejects.toMatchObject({ code: 'foreign-contract' })
})

test('checks more channels than one RPC request can hold', async () => {
  const channels = Array.from({ length: 402 }, makeAccount)
  const relay = relayOf(channels)
  await announceChannels(relay)
  await checkChannels(relay)
  const problems = (await findChannels(fixture.db, TOKEN)).map(({ problem }) => problem)
  expect(problems).toEqual(channels.map(() => 'registration'))
  expect(Math.max(...rpc.requests)).toBe(200)
})
