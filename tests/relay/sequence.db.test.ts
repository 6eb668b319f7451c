import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { type relayChannels, relayJobs } from '#drizzle/schema/relay.ts'
import { type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { envelopeRow, insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { compareSequences, openComparison, requireKnownNumber } from '#lib/relay/sequence.ts'
import type { LedgerTime } from '#lib/stellar/view.ts'
import { type CountingLedger, payment, relayOn } from './counting-ledger.ts'
import { openLineFixture, RECIPIENT, TOKEN } from './line-fixture.ts'

const CHANNEL = Keypair.random()
const ADDRESS = CHANNEL.publicKey()

const fixture = await openLineFixture()
afterAll(fixture.close)
beforeEach(() => fixture.makeChannels(ADDRESS))

const isStopped = async () => (await fixture.stopOf()) !== undefined
const setChannel = (columns: Partial<typeof relayChannels.$inferInsert>) => fixture.setChannel(ADDRESS, columns)

/** Records a transfer of the channel. */
async function record(status: TransferStatus, sequenceNumber: bigint, resultCode?: string): Promise<void> {
  const row = transferRow({ account: ADDRESS, status, sequenceNumber, ...(resultCode !== undefined && { resultCode }) })
  await insertRows(fixture.db, { transfers: [row] })
}

/** The transfers that a channel may have recorded for number 8, and whether the ledger's number 8 stops payments then. */
const USES: [what: string, status: TransferStatus, resultCode: string | undefined, stops: boolean][] = [
  ['an open transfer, which may have used it', 'open', undefined, false],
  ['a transfer that has succeeded', 'succeeded', undefined, false],
  ['a transfer that has failed on the ledger', 'failed', 'txFailed', false],
  ['a transfer whose end is unknown', 'unknown', undefined, false],
  ['a transfer that has expired', 'expired', undefined, true],
  ['a transfer that has expired because its number was used', 'expired', 'txBadSeq', true],
  ['a transfer that has failed without using its number', 'failed', 'txTooLate', true],
  ['a transfer of an earlier number', 'succeeded', undefined, true],
]

describe('compares the ledger’s last number with the known ones', () => {
  const compare = () => compareSequences(relayOn(fixture, {}))

  test.each(USES)('such as that of %s', async (what, status, resultCode, stops) => {
    await setChannel({ adoptedSequence: 6n })
    await record('succeeded', 7n)
    if (!what.includes('earlier')) await record(status, 8n, resultCode)
    await compare()
    expect(await isStopped()).toBe(stops)
    expect(await fixture.channelOf(ADDRESS)).toMatchObject({ ledgerSequence: 8n, comparedAt: expect.any(Date) })
  })

  test.each([
    [7n, true],
    [8n, false],
    [9n, false],
  ] as const)('such as the adopted number %d', async (adoptedSequence, stops) => {
    await setChannel({ adoptedSequence })
    await compare()
    expect(await isStopped()).toBe(stops)
  })

  test('also where a transfer was recorded before the channel was adopted', async () => {
    await setChannel({ adoptedSequence: null })
    await record('succeeded', 8n)
    await compare()
    expect(await isStopped()).toBe(false)
    await fixture.db.update(transfers).set({ sequenceNumber: 7n })
    await compare()
    expect(await isStopped()).toBe(true)
  })

  test('and not with those of other accounts', async () => {
    await setChannel({ adoptedSequence: 7n })
    await insertRows(fixture.db, {
      transfers: [transferRow({ account: 'G', status: 'succeeded', sequenceNumber: 8n })],
    })
    await compare()
    expect(await isStopped()).toBe(true)
  })

  test('but not of a retired channel', async () => {
    await setChannel({ adoptedSequence: 7n, retired: true, comparedAt: null })
    await compare()
    expect(await isStopped()).toBe(false)
    expect(await fixture.channelOf(ADDRESS)).toMatchObject({ ledgerSequence: null, comparedAt: null })
  })
})

test('does not compare with the response of a lagging node when it starts', async () => {
  await setChannel({ adoptedSequence: 7n, comparedAt: null })
  const since = Date.now()
  const lagging = { sequence: 7n, behind: 1 }
  const current = { sequence: 8n, behind: 0 }
  const compareWith = async (...accounts: { sequence: bigint; behind: number }[]) => {
    const relay = relayOn(fixture, { closedAt: since, readAccount: readingsOf(accounts) })
    return await compareSequences(relay, await relay.ledger.readClosedAfter(since as LedgerTime))
  }
  await expect(compareWith(lagging)).rejects.toThrow('the RPC lags')
  expect(await isStopped()).toBe(false)
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ comparedAt: null })
  await compareWith(lagging, lagging, current)
  expect(await isStopped()).toBe(true)
})

test('compares the other channels although one cannot be read', async () => {
  const other = Keypair.random().publicKey()
  await fixture.makeChannels(ADDRESS, other)
  await fixture.makeLine()
  await fixture.setChannel(ADDRESS, { adoptedSequence: null, comparedAt: null })
  await fixture.setChannel(other, { adoptedSequence: 7n, comparedAt: null })
  await expect(compareSequences(relayOn(fixture, { eventsBehind: 2 }))).rejects.toThrow('events are behind')
  expect(await isStopped()).toBe(true)
  expect(await fixture.channelOf(other)).toMatchObject({ comparedAt: expect.any(Date) })
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ comparedAt: null })
})

test('compares the channels for a client’s payment unless they were compared lately', async () => {
  let readings = 0
  const readAccount = async (ledger: number) => {
    readings += 1
    return { sequence: 8n, ledger }
  }
  await setChannel({ adoptedSequence: 8n, comparedAt: new Date() })
  await openComparison(relayOn(fixture, { readAccount }))()
  expect(readings).toBe(0)
  await setChannel({ adoptedSequence: 7n, comparedAt: new Date(Date.now() - 130_000) })
  const compare = openComparison(relayOn(fixture, { readAccount }))
  await Promise.all([compare(), compare()])
  await compare()
  expect([readings, await isStopped()]).toEqual([1, true])
})

describe('lets a channel sign', () => {
  const require = (number: bigint, isLine = true) =>
    requireKnownNumber(fixture.db, TOKEN, { address: ADDRESS, number, isLine })

  test('with the number after a known one, or an earlier one', async () => {
    await setChannel({ adoptedSequence: 6n })
    await record('succeeded', 7n)
    await require(7n)
    await require(8n)
    await expect(require(9n)).rejects.toMatchObject({ code: 'channel-moved' })
    await expect(require(9n, false)).rejects.toMatchObject({ code: 'channel-moved' })
    // What has expired may have made room for a transaction that this database lacks.
    await record('expired', 8n, 'txBadSeq')
    await expect(require(9n)).rejects.toMatchObject({ code: 'channel-moved' })
    await fixture.db.update(transfers).set({ status: 'succeeded', hash: 'hash' }).where(eq(transfers.status, 'expired'))
    await require(9n)
  })

  test.each([{ paused: true }, { retired: true }])('no payment, but its own calls, while it is %j', async (state) => {
    await setChannel({ adoptedSequence: 7n, ...state })
    await expect(require(8n)).rejects.toMatchObject({ code: 'channel-paused' })
    await require(8n, false)
  })

  test('no payment, but its own calls, before it is adopted', async () => {
    await setChannel({ adoptedSequence: null })
    await expect(require(8n)).rejects.toMatchObject({ code: 'not-adopted' })
    await require(8n, false)
  })
})

describe('adopts the number of a channel that has none', () => {
  const PAYMENT = payment({ channel: CHANNEL, to: RECIPIENT, ledger: 60 })
  const compare = (ledger: CountingLedger) => compareSequences(relayOn(fixture, ledger))
  const adopted = async () => (await fixture.channelOf(ADDRESS))?.adoptedSequence
  beforeEach(async () => {
    await fixture.db.delete(relayJobs)
    await setChannel({ adoptedSequence: null })
  })

  test('while the database has nothing that it could have paid', async () => {
    await compare({ payments: [PAYMENT] })
    await compare({ payments: [PAYMENT] })
    expect([await adopted(), await isStopped()]).toEqual([8n, false])
  })

  test('if each of its payments has a row, and stops payments otherwise', async () => {
    await fixture.makeLine()
    const lost = payment({ channel: CHANNEL, to: RECIPIENT, ledger: 70 })
    const known = transferRow({ account: 'G', status: 'succeeded' })
    const envelope = envelopeRow({ transfer: known.id, innerHash: PAYMENT.hash })
    await insertRows(fixture.db, { transfers: [known], envelopes: [envelope] })
    await compare({ payments: [PAYMENT] })
    expect([await adopted(), await isStopped()]).toEqual([8n, false])
    await setChannel({ adoptedSequence: null })
    await compare({ payments: [PAYMENT, lost] })
    expect([await adopted(), await isStopped()]).toEqual([null, true])
  })

  test('if its account is new, without its events', async () => {
    await fixture.makeLine()
    const sequence = (77n << 32n) + 1n
    await compare({ payments: [PAYMENT], readAccount: async (ledger) => ({ sequence, ledger }) })
    expect([await adopted(), await isStopped()]).toEqual([sequence, false])
  })

  test('once the events are as recent as its account', async () => {
    await fixture.makeLine()
    await expect(compare({ eventsBehind: 2 })).rejects.toThrow('events are behind')
    expect([await adopted(), await isStopped()]).toEqual([null, false])
  })
})

test.each([
  ['counts a channel that never had an account as compared: overdue lines must not wait for it', null],
  ['does not count a channel that has lost its account as compared', 5n],
])('%s', async (_, adoptedSequence) => {
  await setChannel({ comparedAt: null, adoptedSequence })
  await compareSequences(relayOn(fixture, { readAccount: async (ledger) => ({ sequence: undefined, ledger }) }))
  const comparedAt = adoptedSequence === null ? expect.any(Date) : null
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ comparedAt, adoptedSequence })
})

/** Reading n of an account is the nth of `accounts`, or the last, so many ledgers `behind`. */
function readingsOf(accounts: readonly { sequence: bigint; behind: number }[]): CountingLedger['readAccount'] {
  let readings = 0
  return async (latest) => {
    const { sequence, behind } = accounts[Math.min(readings++, accounts.length - 1)] ?? { sequence: 0n, behind: 0 }
    return { sequence, ledger: latest - behind }
  }
}
