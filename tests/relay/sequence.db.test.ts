import { Account, Asset, Keypair, Networks, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { releaseMoved } from '#lib/relay/moved.ts'
import type { Relay } from '#lib/relay/relay.ts'
import { compareSequences, suspectMove } from '#lib/relay/sequence.ts'
import { relayOn } from './counting-ledger.ts'
import { type ItemFixture, LATER, openItemFixture } from './item-fixture.ts'

const CHANNEL = Keypair.random()
const ADDRESS = CHANNEL.publicKey()

let fixture: ItemFixture

beforeAll(async () => {
  fixture = await openItemFixture()
})
afterAll(() => fixture.close())
beforeEach(() => fixture.makeChannels(ADDRESS))

const problemOfChannel = async () => (await fixture.channelOf(ADDRESS))?.problem

test('finds that an unknown transaction has used the number of an expired transfer', async () => {
  await suspectMove(relayReading({ accounts: [{ sequence: 8n, behind: 0 }] }), await signedItem())
  expect(await problemOfChannel()).toBe('moved')
})

test('does not take the response of a lagging node as proof that the number is free', async () => {
  const lagging = { sequence: 7n, behind: 1 }
  const item = await signedItem()
  await suspectMove(relayReading({ accounts: [lagging, lagging, { sequence: 8n, behind: 0 }] }), item)
  expect(await problemOfChannel()).toBe('moved')
  await fixture.makeChannels(ADDRESS)
  await expect(suspectMove(relayReading({ accounts: [lagging] }), item)).rejects.toThrow('the RPC lags')
})

test('measures the recency of a reading by the ledger, not by the clock of the database', async () => {
  // The network's time is years behind the database's.
  const closedAt = new Date('2020-01-01T00:00:00Z').getTime()
  await suspectMove(relayReading({ closedAt, accounts: [{ sequence: 7n, behind: 0 }] }), await signedItem())
  expect(await problemOfChannel()).toBeNull()
})

test.each([
  ['', 'moved'],
  ['7', 'moved'],
  ['8', null],
] as const)('compares the last number 8 with its known uses, such as the own call "%s"', async (ownCall, problem) => {
  await fixture.db
    .update(relayChannels)
    .set({ sequenceNumber: 8n, adoptedSequence: ownCall === '' ? null : BigInt(ownCall) })
    .where(eq(relayChannels.address, ADDRESS))
  await compareSequences(relayReading({ accounts: [{ sequence: 8n, behind: 0 }] }))
  expect(await problemOfChannel()).toBe(problem)
})

test('adopts the number of a channel that has none, and of one that is released', async () => {
  await fixture.db.update(relayChannels).set({ sequenceNumber: null }).where(eq(relayChannels.address, ADDRESS))
  const relay = relayReading({ accounts: [{ sequence: 8n, behind: 0 }] })
  await compareSequences(relay)
  await compareSequences(relay)
  expect(await problemOfChannel()).toBeNull()
  await fixture.db.update(relayChannels).set({ problem: 'moved', movedAt: new Date(0) })
  expect(await releaseMoved(relay, { address: ADDRESS, isUnverified: true })).toEqual({ recorded: 0, settled: 0 })
  await compareSequences(relay)
  expect(await problemOfChannel()).toBe('account')
})

test.each([
  ['counts a channel that never had an account as compared: overdue items must not wait for it', null],
  ['does not count a channel that has lost its account as compared', 5n],
])('%s', async (_, sequenceNumber) => {
  await fixture.db.update(relayChannels).set({ comparedAt: null, sequenceNumber })
  await compareSequences(
    relayOn(fixture, ADDRESS, { readAccount: async (ledger) => ({ sequence: undefined, ledger }) }),
  )
  const comparedAt = sequenceNumber === null ? expect.any(Date) : null
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ comparedAt, sequenceNumber })
})

test('does not release a channel based on an account older than the move', async () => {
  await fixture.db
    .update(relayChannels)
    .set({ problem: 'moved', movedAt: LATER })
    .where(eq(relayChannels.address, ADDRESS))
  const relay = relayReading({ accounts: [{ sequence: 8n, behind: 1 }] })
  expect(await releaseMoved(relay, { address: ADDRESS, isUnverified: true })).toBe('rpc-lags')
  expect(await problemOfChannel()).toBe('moved')
})

/** An item whose transfer uses the channel's sequence number 8. */
async function signedItem() {
  const transaction = new TransactionBuilder(new Account(ADDRESS, '7'), {
    fee: '100',
    networkPassphrase: Networks.TESTNET,
  })
    .addOperation(Operation.payment({ destination: ADDRESS, asset: Asset.native(), amount: '1' }))
    .setTimeout(60)
    .build()
  transaction.sign(CHANNEL)
  const item = await fixture.sign(
    await fixture.take(await fixture.makeItem(), ADDRESS),
    Buffer.from(transaction.hash()).toString('hex'),
  )
  return { ...item, signedXdr: transaction.toXdr() }
}

/** A relay whose reading n of the channel's account is the nth of `accounts`, or the last, so many ledgers `behind`. */
function relayReading({
  closedAt,
  accounts,
}: {
  closedAt?: number
  accounts: readonly { sequence: bigint; behind: number }[]
}): Relay {
  let readings = 0
  const readAccount = async (latest: number) => {
    const { sequence, behind } = accounts[Math.min(readings++, accounts.length - 1)] ?? { sequence: 0n, behind: 0 }
    return { sequence, ledger: latest - behind }
  }
  return relayOn(fixture, ADDRESS, { readAccount, ...(closedAt !== undefined && { closedAt }) })
}
