import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { envelopeRow, insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { releaseMoved } from '#lib/relay/moved.ts'
import { type CountingLedger, relayOn } from './counting-ledger.ts'
import { LATER, type LineFixture, openLineFixture } from './line-fixture.ts'

const ADDRESS = Keypair.random().publicKey()
const UNVERIFIED = { address: ADDRESS, isUnverified: true }
const VERIFIED = { address: ADDRESS, isUnverified: false }
const NOTHING = { recorded: 0, settled: 0 }

let fixture: LineFixture
beforeAll(async () => {
  fixture = await openLineFixture()
})
afterAll(() => fixture?.close())
beforeEach(async () => {
  await fixture.db.delete(transfers)
  await fixture.makeChannels(ADDRESS)
})

const setChannel = (columns: Partial<typeof relayChannels.$inferInsert>) =>
  fixture.db.update(relayChannels).set(columns).where(eq(relayChannels.address, ADDRESS))
/** Finds that the channel has moved. */
const move = (columns: Partial<typeof relayChannels.$inferInsert> = {}) =>
  setChannel({ problem: 'moved', movedAt: new Date(0), ...columns })
const problemOfChannel = async () => (await fixture.channelOf(ADDRESS))?.problem

/** A relay whose readings of the account have the number 8, and are up to date. */
const onLedger = (ledger: Partial<CountingLedger> = {}, channels?: readonly string[]) =>
  relayOn(fixture, ADDRESS, { readAccount: async (latest) => ({ sequence: 8n, ledger: latest }), ...ledger }, channels)

const releasesOf = async () =>
  (await fixture.db.query.auditLog.findMany({ orderBy: (row) => row.sequence }))
    .filter(({ subjectId }) => subjectId === ADDRESS)
    .map(({ actorSub, action, detail }) => ({ actorSub, action, detail }))

/** A transfer of the channel that was applied in this ledger. */
const applied = (ledger: number, hash = `hash ${ledger}`) =>
  transferRow({ account: ADDRESS, status: 'succeeded', sequenceNumber: BigInt(ledger), ledger, hash })

/** Records transfers with an envelope each. */
async function record(...transfers: ReturnType<typeof transferRow>[]): Promise<void> {
  const envelopes = transfers.map(({ id, hash }) =>
    envelopeRow({ innerHash: `inner of ${id}`, outerHash: hash, transfer: id }),
  )
  await insertRows(fixture.db, { transfers, envelopes })
}

test('releases a channel verified only with its seed, and unverified without', async () => {
  await move()
  const stranger = onLedger({}, [])
  expect(await releaseMoved(stranger, VERIFIED)).toBe('unknown-channel')
  expect(await problemOfChannel()).toBe('moved')
  expect(await releaseMoved(stranger, UNVERIFIED)).toEqual(NOTHING)
  expect(await problemOfChannel()).toBe('account')
})

test('takes nothing from a channel that has not moved', async () => {
  await fixture.makeLine()
  const line = await fixture.take(ADDRESS)
  expect(await releaseMoved(onLedger(), VERIFIED)).toBe('not-moved')
  expect(await fixture.lineOf(line)).toMatchObject({ state: 'preparing', channel: ADDRESS })
})

test('leaves a channel as a new one is, with the ledger’s sequence number', async () => {
  await move({
    movedSequence: 7n,
    adoptedSequence: 3n,
    readAt: LATER,
    releaseRequestedAt: LATER,
    releaseRequestedBy: 'Ada',
    releaseNote: 'after a restore',
    releaseTriedAt: LATER,
    releaseRefusal: 'rpc-lags',
  })
  const before = await releasesOf()
  expect(await releaseMoved(onLedger(), { ...VERIFIED, operator: 'Ada', note: 'after a restore' })).toEqual(NOTHING)
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({
    problem: 'account',
    movedAt: null,
    movedSequence: null,
    adoptedSequence: 8n,
    readAt: null,
    releaseRequestedAt: null,
    releaseRequestedBy: null,
    releaseNote: null,
    releaseTriedAt: null,
    releaseRefusal: null,
  })
  const detail = { ...NOTHING, verified: true, note: 'after a restore' }
  expect((await releasesOf()).slice(before.length)).toEqual([{ actorSub: 'Ada', action: 'channel.released', detail }])
})

test('adopts no sequence number for an account that the ledger lacks', async () => {
  await move({ adoptedSequence: 3n })
  const relay = onLedger({ readAccount: async (ledger) => ({ sequence: undefined, ledger }) })
  expect(await releaseMoved(relay, UNVERIFIED)).toEqual(NOTHING)
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ adoptedSequence: null })
  expect((await releasesOf()).at(-1)).toMatchObject({
    actorSub: 'command line',
    detail: { ...NOTHING, verified: false },
  })
})

test('reads the account as of a ledger that closed after the move', async () => {
  await move({ movedAt: new Date(LATER.getTime() + 52_000) })
  // The transaction that moved it is in ledger 110, which closed 50 s after ledger 100.
  const readAccount = async (ledger: number) => ({ sequence: ledger > 110 ? 9n : 8n, ledger })
  expect(await releaseMoved(onLedger({ closedAt: LATER.getTime(), readAccount }), VERIFIED)).toEqual(NOTHING)
  expect(await fixture.channelOf(ADDRESS)).toMatchObject({ adoptedSequence: 9n })
})

test('waits for the end of a transfer that the channel has recorded', async () => {
  await fixture.makeLine()
  const transfer = await fixture.record(await fixture.take(ADDRESS))
  await move()
  expect(await releaseMoved(onLedger(), UNVERIFIED)).toBe('transfer-open')
  await fixture.settle(transfer, 'expired')
  expect(await releaseMoved(onLedger(), UNVERIFIED)).toEqual(NOTHING)
  await move()
  await insertRows(fixture.db, { transfers: [transferRow({ account: ADDRESS })] })
  expect(await releaseMoved(onLedger(), UNVERIFIED)).toBe('transfer-open')
  expect(await problemOfChannel()).toBe('moved')
  await fixture.db.update(transfers).set({ status: 'expired', settledAt: LATER })
  expect(await releaseMoved(onLedger(), UNVERIFIED)).toEqual(NOTHING)
})

test('leaves the line that a moved channel leases to the channels that pay once it is released', async () => {
  await fixture.makeLine()
  const line = await fixture.take(ADDRESS)
  await move({ movedAt: new Date() })
  await expect(fixture.record(line)).rejects.toMatchObject({ code: 'line-suspended' })
  await setChannel({ movedAt: new Date(0) })
  await expect(fixture.record(line)).rejects.toMatchObject({ code: 'channel-unfit', problem: 'moved' })
  expect(await releaseMoved(onLedger(), VERIFIED)).toEqual(NOTHING)
  await fixture.record(line, 'inner', 9n)
  expect(await fixture.lineOf(line)).toMatchObject({ state: 'sent' })
})

test('releases a channel once for two requests at the same time', async () => {
  await move()
  const before = (await releasesOf()).length
  const bothRead = Promise.withResolvers<void>()
  let readings = 0
  const relay = onLedger({
    readAccount: async (ledger) => {
      readings += 1
      if (readings === 2) bothRead.resolve()
      await bothRead.promise
      return { sequence: 8n, ledger }
    },
  })
  const answers = await Promise.all([releaseMoved(relay, UNVERIFIED), releaseMoved(relay, UNVERIFIED)])
  expect(answers).toContainEqual(NOTHING)
  expect(answers).toContain('not-moved')
  expect((await releasesOf()).slice(before)).toHaveLength(1)
})

test('reads the channel’s transfers since the last sponsored one, and none when unverified', async () => {
  await record(applied(60), applied(50), transferRow({ account: 'G', ledger: 70 }))
  await move()
  const relay = onLedger({ transfers: [{ hash: 'hash 60', ledger: 60 }] })
  expect(await releaseMoved(relay, VERIFIED)).toEqual(NOTHING)
  expect(relay.starts).toEqual([60])
  await move()
  const short = onLedger({ oldestLedger: 59 })
  expect(await releaseMoved(short, VERIFIED)).toBe('history-too-short')
  expect(await problemOfChannel()).toBe('moved')
  expect(await releaseMoved(short, UNVERIFIED)).toEqual(NOTHING)
  expect(short.starts).toEqual([])
})

test('starts before a lost payment that another line has found on the ledger already', async () => {
  await record(applied(60), { ...applied(80), bid: 0n })
  await move()
  const relay = onLedger({ transfers: [{ hash: 'hash 80', ledger: 80 }] })
  expect(await releaseMoved(relay, VERIFIED)).toEqual(NOTHING)
  expect(relay.starts).toEqual([60])
})

test.each([
  [1, NOTHING, 'account'],
  [2, 'rpc-lags', 'moved'],
] as const)(
  'needs events as recent as the account: %d ledgers behind the next one',
  async (eventsBehind, answer, problem) => {
    await move()
    expect(await releaseMoved(onLedger({ eventsBehind }), VERIFIED)).toEqual(answer)
    expect(await problemOfChannel()).toBe(problem)
  },
)

test.each([
  [100, 1, 'rpc-lags'],
  [5, 6, 'history-too-short'],
] as const)(
  'releases no channel before each of its transfers is recorded: ledger %d is missing, the oldest is %d',
  async (ledger, oldestLedger, refusal) => {
    await move()
    const known = transferRow({ account: ADDRESS, status: 'succeeded' })
    await insertRows(fixture.db, {
      transfers: [known],
      envelopes: [envelopeRow({ transfer: known.id, innerHash: 'known' })],
    })
    const missing = { hash: 'f'.repeat(64), ledger }
    const relay = onLedger({ transfers: [{ hash: 'known', ledger: 4 }, missing], oldestLedger })
    expect(await releaseMoved(relay, VERIFIED)).toBe(refusal)
    expect(await problemOfChannel()).toBe('moved')
  },
)
