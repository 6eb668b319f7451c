import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { releaseMoved } from '#lib/relay/moved.ts'
import type { Relay } from '#lib/relay/relay.ts'
import { compareSequences, requireKnownNumber } from '#lib/relay/sequence.ts'
import { relayOn } from './counting-ledger.ts'
import { LATER, type LineFixture, openLineFixture } from './line-fixture.ts'

const ADDRESS = Keypair.random().publicKey()

let fixture: LineFixture

beforeAll(async () => {
  fixture = await openLineFixture()
})
afterAll(() => fixture?.close())
beforeEach(() => fixture.makeChannels(ADDRESS))

const problemOfChannel = async () => (await fixture.channelOf(ADDRESS))?.problem
const setChannel = (columns: Partial<typeof relayChannels.$inferInsert>) =>
  fixture.db.update(relayChannels).set(columns).where(eq(relayChannels.address, ADDRESS))

/** Records a transfer of the channel. */
async function record(status: TransferStatus, sequenceNumber: bigint, resultCode?: string): Promise<void> {
  const row = transferRow({ account: ADDRESS, status, sequenceNumber, ...(resultCode !== undefined && { resultCode }) })
  await insertRows(fixture.db, { transfers: [row] })
}

/** The transfers that a channel may have recorded for number 8, and the problem that the ledger's number 8 shows then. */
const USES: [what: string, status: TransferStatus, resultCode: string | undefined, problem: 'moved' | null][] = [
  ['an open transfer, which may have used it', 'open', undefined, null],
  ['a transfer that has succeeded', 'succeeded', undefined, null],
  ['a transfer that has failed on the ledger', 'failed', 'txFailed', null],
  ['a transfer whose end is unknown', 'unknown', undefined, null],
  ['a transfer that has expired', 'expired', undefined, 'moved'],
  ['a transfer that has expired because its number was used', 'expired', 'txBadSeq', 'moved'],
  ['a transfer that has failed without using its number', 'failed', 'txTooLate', 'moved'],
  ['a transfer of an earlier number', 'succeeded', undefined, 'moved'],
]

describe('compares the ledger’s last number with the known ones', () => {
  const compare = () => compareSequences(relayReading({ accounts: [{ sequence: 8n, behind: 0 }] }))

  test.each(USES)('such as that of %s', async (what, status, resultCode, problem) => {
    await setChannel({ adoptedSequence: 6n })
    await record('succeeded', 7n)
    if (!what.includes('earlier')) await record(status, 8n, resultCode)
    await compare()
    expect(await problemOfChannel()).toBe(problem)
    expect(await fixture.channelOf(ADDRESS)).toMatchObject({
      movedSequence: problem === null ? null : 8n,
      comparedAt: expect.any(Date),
    })
  })

  test.each([
    [7n, 'moved'],
    [8n, null],
    [9n, null],
  ] as const)('such as the adopted number %d', async (adoptedSequence, problem) => {
    await setChannel({ adoptedSequence })
    await compare()
    expect(await problemOfChannel()).toBe(problem)
  })

  test('also where a transfer was recorded before the channel was adopted', async () => {
    await setChannel({ adoptedSequence: null })
    await record('succeeded', 8n)
    await compare()
    expect(await problemOfChannel()).toBeNull()
    await fixture.db.update(transfers).set({ sequenceNumber: 7n })
    await compare()
    expect(await problemOfChannel()).toBe('moved')
  })

  test('and not with those of other accounts', async () => {
    await setChannel({ adoptedSequence: 7n })
    await insertRows(fixture.db, {
      transfers: [transferRow({ account: 'G', status: 'succeeded', sequenceNumber: 8n })],
    })
    await compare()
    expect(await problemOfChannel()).toBe('moved')
  })
})

test('finds that a channel that has moved moves again', async () => {
  const compareWith = (sequence: bigint) => compareSequences(relayReading({ accounts: [{ sequence, behind: 0 }] }))
  await setChannel({ adoptedSequence: 7n })
  await compareWith(8n)
  const first = await fixture.channelOf(ADDRESS)
  await compareWith(8n)
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ movedAt: first?.movedAt, movedSequence: 8n })
  await compareWith(9n)
  const second = await fixture.channelOf(ADDRESS)
  expect(second?.movedSequence).toBe(9n)
  expect(second?.movedAt?.getTime()).toBeGreaterThan(first?.movedAt?.getTime() ?? 0)
})

test('does not compare with the response of a lagging node when it starts', async () => {
  await setChannel({ adoptedSequence: 7n, comparedAt: null })
  const since = Date.now()
  const lagging = { sequence: 7n, behind: 1 }
  const current = { sequence: 8n, behind: 0 }
  const compareWith = (...accounts: { sequence: bigint; behind: number }[]) =>
    compareSequences(relayReading({ closedAt: since, accounts }), since)
  await expect(compareWith(lagging)).rejects.toThrow('the RPC lags')
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ problem: null, comparedAt: null })
  await compareWith(lagging, lagging, current)
  expect(await problemOfChannel()).toBe('moved')
})

describe('lets a channel sign', () => {
  const require = (number: bigint, isLine = true) =>
    requireKnownNumber(fixture.db, 'token', { address: ADDRESS, number, isLine })

  test('with the number after a known one, or an earlier one', async () => {
    await setChannel({ adoptedSequence: 6n })
    await record('succeeded', 7n)
    await require(7n)
    await require(8n)
    await expect(require(9n)).rejects.toMatchObject({ code: 'channel-unfit', problem: 'moved' })
    // What has expired may have made room for a transaction that this database lacks.
    await record('expired', 8n, 'txBadSeq')
    await expect(require(9n)).rejects.toMatchObject({ code: 'channel-unfit', problem: 'moved' })
    await fixture.db.update(transfers).set({ status: 'succeeded', hash: 'hash' }).where(eq(transfers.status, 'expired'))
    await require(9n)
  })

  test('nothing while it has moved', async () => {
    await setChannel({ adoptedSequence: 7n, problem: 'moved', movedAt: LATER })
    await expect(require(8n)).rejects.toMatchObject({ code: 'channel-unfit', problem: 'moved' })
    await expect(require(8n, false)).rejects.toMatchObject({ code: 'channel-unfit', problem: 'moved' })
  })

  test('no payment, but its own calls, before it is adopted or while it is paused', async () => {
    await setChannel({ adoptedSequence: null })
    await expect(require(8n)).rejects.toMatchObject({ code: 'not-adopted' })
    await require(8n, false)
    await setChannel({ adoptedSequence: 7n, paused: true })
    await expect(require(8n)).rejects.toMatchObject({ code: 'channel-paused' })
    await require(8n, false)
  })
})

test('adopts the number of a channel that has none, and of one that is released', async () => {
  await setChannel({ adoptedSequence: null })
  const relay = relayReading({ accounts: [{ sequence: 8n, behind: 0 }] })
  await compareSequences(relay)
  await compareSequences(relay)
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ problem: null, adoptedSequence: 8n })
  await setChannel({ problem: 'moved', movedAt: new Date(0) })
  expect(await releaseMoved(relay, { address: ADDRESS, isUnverified: true })).toEqual({ recorded: 0, settled: 0 })
  await compareSequences(relay)
  expect(await problemOfChannel()).toBe('account')
})

test.each([
  ['counts a channel that never had an account as compared: overdue lines must not wait for it', null],
  ['does not count a channel that has lost its account as compared', 5n],
])('%s', async (_, adoptedSequence) => {
  await fixture.db.update(relayChannels).set({ comparedAt: null, adoptedSequence })
  await compareSequences(
    relayOn(fixture, ADDRESS, { readAccount: async (ledger) => ({ sequence: undefined, ledger }) }),
  )
  const comparedAt = adoptedSequence === null ? expect.any(Date) : null
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ comparedAt, adoptedSequence })
})

test('does not release a channel based on an account older than the move', async () => {
  await setChannel({ problem: 'moved', movedAt: LATER })
  const relay = relayReading({ accounts: [{ sequence: 8n, behind: 1 }] })
  expect(await releaseMoved(relay, { address: ADDRESS, isUnverified: true })).toBe('rpc-lags')
  expect(await problemOfChannel()).toBe('moved')
})

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
