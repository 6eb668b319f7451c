import { expect, test } from 'vitest'
import { readHistory } from '#lib/disclosure/history.ts'
import { openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import type { ArchivedEvent, TokenArchive } from '#lib/wallet/archive.ts'
import { holder, TOKEN } from '../wallet/fixtures.ts'
import { archived, archiveOf, closedAt, OLDEST, serverWith } from './stub-sources.ts'

const [employer, contractor] = ['employer', 'contractor'].map((name) => holder(name).address) as [string, string]
/** The RPC drops its oldest ledgers while it is read, so reading begins above them. */
const FIRST_READ = OLDEST + 2

const registration = archived(10, 'register', [contractor])
const first = archived(20, 'transfer', [employer, contractor])
const late = archived(1_500, 'transfer', [employer, contractor])
const ledgersOf = ({ events }: { events: { ledger: number }[] }) => events.map(({ ledger }) => ledger)

test.each<[string, TokenArchive[]]>([
  ['an archive has the registration', [archiveOf([registration, first])]],
  ['a second archive goes back further', [archiveOf([first]), archiveOf([registration, first])]],
])('an account has its whole history if %s', async (_, archives) => {
  const history = await readHistory({ rpc: serverWith([late]), token: TOKEN, archives }, contractor)
  expect(ledgersOf(history)).toEqual([10, 20, 1_500])
  expect(history.completeFrom).toBeUndefined()
})

test('does not claim the ledgers below the first one that it reads', async () => {
  const dropped = archived(OLDEST + 1, 'transfer', [employer, contractor])
  const history = await readHistory({ rpc: serverWith([dropped, late]), token: TOKEN, archives: [] }, contractor)
  expect(ledgersOf(history)).toEqual([1_500])
  expect(Date.parse(history.completeFrom ?? '')).toBeGreaterThan(Date.parse(dropped.ledger_close_time))
})

test.each<[string, TokenArchive[], string]>([
  ['the archive began after the registration', [archiveOf([first])], closedAt(20)],
  ['the archive has nothing', [archiveOf([])], closedAt(FIRST_READ)],
  ['there is no archive', [], closedAt(FIRST_READ)],
])('says since when an account’s history is complete if %s', async (_, archives, from) => {
  const history = await readHistory({ rpc: serverWith([late]), token: TOKEN, archives }, contractor)
  expect(history.completeFrom).toBe(from)
})

test('queries no archive for an account that registered within the RPC’s history', async () => {
  const recent = [archived(1_400, 'register', [contractor]), late]
  const away = { ...archiveOf([]), readEvents: () => Promise.reject(new Error('away')) }
  const history = await readHistory({ rpc: serverWith(recent), token: TOKEN, archives: [away] }, contractor)
  expect(history).toMatchObject({ events: [{ ledger: 1_400 }, { ledger: 1_500 }] })
  expect(history.completeFrom).toBeUndefined()
})

test('a token’s history is incomplete if it lacks the registration of an account that pays', async () => {
  const read = (events: ArchivedEvent[]) =>
    readHistory({ rpc: serverWith([late]), token: TOKEN, archives: [archiveOf(events)] })
  const registered = [archived(5, 'register', [employer]), registration, first]
  expect((await read(registered)).completeFrom).toBeUndefined()
  expect((await read([registration, first])).completeFrom).toBe(closedAt(10))
})

test('an archive with a gap is refused', async () => {
  const archives = [archiveOf([registration], false)]
  await expect(readHistory({ rpc: serverWith([late]), token: TOKEN, archives }, contractor)).rejects.toMatchObject({
    code: 'history-incomplete',
  })
})

test('does not say that an event does not exist if an archive may not have its ledger yet', async () => {
  const find = (...archives: TokenArchive[]) =>
    openLedgerSource(serverWith([]), TOKEN, archives).findEvent({ transaction: first.tx_hash, eventIndex: 0 })
  await expect(find(archiveOf([]))).rejects.toMatchObject({ code: 'event-not-found' })
  await expect(find(archiveOf([]), archiveOf([], false, 'late'))).rejects.toMatchObject({
    code: 'event-out-of-range',
    message: expect.stringContaining('late'),
  })
})
