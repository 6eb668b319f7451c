import { Address, rpc, xdr } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { readHistory } from '#lib/disclosure/history.ts'
import type { TokenArchive } from '#lib/wallet/archive.ts'
import { holder, TOKEN } from '../wallet/fixtures.ts'

const [employer, contractor] = ['employer', 'contractor'].map((name) => holder(name).address) as [string, string]
const [OLDEST, LATEST] = [1_000, 2_000]
const DAY = 86_400

const closedAt = (ledger: number) => new Date(ledger * DAY * 10_000).toISOString()
const idOf = (ledger: number) => `${String(BigInt(ledger) << 32n).padStart(19, '0')}-0000000000`
const topicsOf = (name: string, addresses: string[]) =>
  [xdr.ScVal.scvSymbol(name), ...addresses.map((each) => Address.fromString(each).toScVal())].map((topic) =>
    topic.toXdr('base64'),
  )
const data = xdr.ScVal.scvMap([]).toXdr('base64')

const archived = (ledger: number, name: string, ...addresses: string[]) => ({
  id: idOf(ledger),
  contract_id: TOKEN,
  ledger_seq: ledger,
  ledger_close_time: closedAt(ledger),
  tx_hash: ledger.toString(16).padStart(64, '0'),
  event_index: 0,
  topics_xdr: topicsOf(name, addresses),
  data_xdr: data,
})
type Archived = ReturnType<typeof archived>

function archiveOf(events: Archived[], complete = true): TokenArchive {
  const read = async (_: number | undefined, through: number) => ({
    events: events.filter(({ ledger_seq }) => ledger_seq <= through),
    complete,
  })
  return {
    name: 'archive',
    findStart: async () => undefined,
    readEvents: (_, from, through) => read(from, through),
    readTransaction: async () => ({ events: [], complete }),
    readToken: read,
    readRegistry: async () => ({ events: [], complete }),
  }
}

/** An RPC that has the ledgers from OLDEST on. */
function serverWith(events: Archived[]): rpc.Server {
  const server = new rpc.Server('http://localhost:1', { allowHttp: true })
  const page = {
    events: events.map((event) => ({
      id: event.id,
      type: 'contract',
      contractId: TOKEN,
      ledger: event.ledger_seq,
      ledgerClosedAt: event.ledger_close_time,
      txHash: event.tx_hash,
      topic: event.topics_xdr.map((topic) => xdr.ScVal.fromXdr(topic, 'base64')),
      value: xdr.ScVal.fromXdr(event.data_xdr, 'base64'),
      operationIndex: 0,
      transactionIndex: 1,
      inSuccessfulContractCall: true,
    })),
    cursor: idOf(LATEST),
    latestLedger: LATEST,
    oldestLedger: OLDEST,
    oldestLedgerCloseTime: String(OLDEST * DAY * 10),
  }
  return Object.assign(server, {
    getHealth: async () => ({ status: 'healthy', oldestLedger: OLDEST, latestLedger: LATEST }),
    getEvents: async () => page,
  })
}

const registration = archived(10, 'register', contractor)
const first = archived(20, 'transfer', employer, contractor)
const late = archived(1_500, 'transfer', employer, contractor)
const ledgersOf = ({ events }: { events: { ledger: number }[] }) => events.map(({ ledger }) => ledger)

test.each<[string, TokenArchive[]]>([
  ['an archive has the registration', [archiveOf([registration, first])]],
  ['a second archive goes back further', [archiveOf([first]), archiveOf([registration, first])]],
])('an account has its whole history if %s', async (_, archives) => {
  const history = await readHistory({ rpc: serverWith([late]), token: TOKEN, archives }, contractor)
  expect(ledgersOf(history)).toEqual([10, 20, 1_500])
  expect(history.completeFrom).toBeUndefined()
})

test.each<[string, TokenArchive[], string]>([
  ['the archive began after the registration', [archiveOf([first])], closedAt(20)],
  ['the archive has nothing', [archiveOf([])], closedAt(OLDEST)],
  ['there is no archive', [], closedAt(OLDEST)],
])('says from when on an account’s history is complete if %s', async (_, archives, from) => {
  const history = await readHistory({ rpc: serverWith([late]), token: TOKEN, archives }, contractor)
  expect(history.completeFrom).toBe(from)
})

test('asks no archive about an account that registered within the RPC’s history', async () => {
  const recent = [archived(1_400, 'register', contractor), late]
  const away = { ...archiveOf([]), readEvents: () => Promise.reject(new Error('away')) }
  const history = await readHistory({ rpc: serverWith(recent), token: TOKEN, archives: [away] }, contractor)
  expect(history).toMatchObject({ events: [{ ledger: 1_400 }, { ledger: 1_500 }] })
  expect(history.completeFrom).toBeUndefined()
})

test('a token’s history is incomplete while an account pays that it does not show registering', async () => {
  const read = (events: Archived[]) =>
    readHistory({ rpc: serverWith([late]), token: TOKEN, archives: [archiveOf(events)] })
  const registered = [archived(5, 'register', employer), registration, first]
  expect((await read(registered)).completeFrom).toBeUndefined()
  expect((await read([registration, first])).completeFrom).toBe(closedAt(10))
})

test('an archive with a gap is refused', async () => {
  const archives = [archiveOf([registration], false)]
  await expect(readHistory({ rpc: serverWith([late]), token: TOKEN, archives }, contractor)).rejects.toMatchObject({
    code: 'history-incomplete',
  })
})
