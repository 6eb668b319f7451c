import { TransactionBuilder } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ingest } from '#lib/archive/ingest.ts'
import { openLocalArchive } from '#lib/archive/local.ts'
import { type EventArchive, openHttpArchive } from '#lib/wallet/archive.ts'
import { type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge, buildTransfer } from '#lib/wallet/calls.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { serveLocally } from '../support/local-server.ts'
import { openTestService, type SignedInPayer, type TestService } from '../support/test-service.ts'

const USDC = 1_0000000n
/** How many ledgers the RPC keeps. */
const HISTORY = 300

let service: TestService<'embedded'>
let employer: SignedInPayer
let contractor: SignedInPayer
let archive: EventArchive

beforeAll(async () => {
  service = await openTestService({
    ledger: 'embedded',
    closeMs: 0,
    historyLedgers: HISTORY,
    http: true,
    choresEveryMs: 0,
  })
  archive = openHttpArchive(`${service.base}/api/archive`, service.ledger.network.token)
})
afterAll(() => service.close())

beforeEach(async () => {
  await whileLedgersClose(async () => {
    employer = await service.employ(1_000n * USDC)
    contractor = await service.employ(0n)
  })
})

async function whileLedgersClose<Result>(work: () => Promise<Result>): Promise<Result> {
  const closing = setInterval(service.ledger.devnet.closeLedger, 20)
  return await work().finally(() => clearInterval(closing))
}

async function pay(from: SignedInPayer, to: string, amount: bigint): Promise<void> {
  const { spendable: opening } = await syncBalance(deployment(archive), from)
  const { signedXdr } = await buildTransfer(service.ledger.network, from, { to, amount, opening })
  const posted = await whileLedgersClose(() => service.post(from, { signedXDR: signedXdr }))
  expect(posted).toMatchObject({ status: 200 })
}

async function mergeReceived(): Promise<void> {
  const { network } = service.ledger
  const { signedXdr } = await buildMerge(network, contractor.signer)
  const { hash } = await network.rpc.sendTransaction(TransactionBuilder.fromXdr(signedXdr, network.passphrase))
  await whileLedgersClose(() => network.rpc.pollTransaction(hash, { attempts: 10_000, sleepStrategy: () => 20 }))
}

/** Archives everything, then closes ledgers until the RPC has dropped it. */
async function letTheWindowPass(): Promise<void> {
  const { archive: own, network } = service.running
  if (!own) throw new Error('there is no archive')
  await ingest(own)
  const { sequence } = await network.server.getLatestLedger()
  for (let closed = 0; closed <= HISTORY; closed += 1) {
    service.ledger.devnet.closeLedger()
    if (closed % 50 === 0) await ingest(own)
  }
  await ingest(own)
  expect((await network.server.getHealth()).oldestLedger).toBeGreaterThan(sequence)
}

const deployment = (...archives: EventArchive[]): Deployment => ({ ...service.ledger.network, archives })

test('a contractor who opens the wallet too late can spend with an archive, and gets the missing range without one', async () => {
  await pay(employer, contractor.address, 12n * USDC)
  await mergeReceived()
  await letTheWindowPass()
  await expect(syncBalance(deployment(), contractor)).rejects.toMatchObject({
    code: 'history-incomplete',
    message: expect.stringMatching(/RPC no longer has all of them. Nothing is lost on the ledger/),
  })
  const { spendable } = await syncBalance(deployment(archive), contractor)
  expect(spendable.value).toBe(12n * USDC)
  const payment = { to: employer.address, amount: 5n * USDC, opening: spendable }
  const { signedXdr } = await buildTransfer(service.ledger.network, contractor, payment)
  const posted = await whileLedgersClose(() => service.post(contractor, { signedXDR: signedXdr }))
  expect(posted).toMatchObject({ status: 200 })
  expect((await syncBalance(deployment(archive), contractor)).spendable.value).toBe(7n * USDC)
})

test('finds money that was received before the last payment and never merged', async () => {
  await pay(employer, contractor.address, 10n * USDC)
  await mergeReceived()
  await pay(employer, contractor.address, 3n * USDC)
  await pay(employer, contractor.address, 4n * USDC)
  await pay(contractor, employer.address, 1n * USDC)
  await letTheWindowPass()
  const { spendable, receiving } = await syncBalance(deployment(archive), contractor)
  expect([spendable.value, receiving.value]).toEqual([9n * USDC, 7n * USDC])
})

test('continues a balance from its cursor beyond the window', async () => {
  await pay(employer, contractor.address, 10n * USDC)
  const known: SyncedBalance = await syncBalance(deployment(archive), contractor)
  expect(known.receiving.value).toBe(10n * USDC)
  await pay(employer, contractor.address, 2n * USDC)
  await letTheWindowPass()
  await pay(employer, contractor.address, 1n * USDC)
  expect((await syncBalance(deployment(archive), contractor, known)).receiving.value).toBe(13n * USDC)
})

test('the service reads its archive in the same way', async () => {
  await pay(employer, contractor.address, 10n * USDC)
  await letTheWindowPass()
  const own = service.running.archive
  if (!own) throw new Error('there is no archive')
  const local = openLocalArchive({ ...own, ingest: () => ingest(own) })
  expect((await syncBalance(deployment(local), contractor)).receiving.value).toBe(10n * USDC)
})

test('readers of the service’s archive that wait at the same time share a round, and a later ledger has its own', async () => {
  await pay(employer, contractor.address, 10n * USDC)
  const own = service.running.archive
  if (!own) throw new Error('there is no archive')
  const [gate, entered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let rounds = 0
  const round = async () => {
    rounds += 1
    const stored = await ingest(own, { isBrief: true })
    if (rounds > 1) return stored
    entered.resolve()
    await gate.promise
    return stored
  }
  const local = openLocalArchive({ ...own, ingest: round })
  const latest = async () => (await service.ledger.network.rpc.getHealth()).latestLedger
  const soon = await latest()
  const readers = [local.reach(soon), local.reach(soon), local.reach(soon)]
  await entered.promise
  await pay(employer, contractor.address, 2n * USDC)
  const later = local.reach(await latest())
  gate.resolve()
  await Promise.all([...readers, later])
  expect(rounds).toBe(2)
})

test('makes no request to an archive while the RPC has the registration', async () => {
  const { spendable } = await syncBalance(deployment(failing), employer)
  expect(spendable.value).toBe(1_000n * USDC)
})

const failing = openHttpArchive('http://127.0.0.1:1', 'C')

test('fails the read if one archive fails, even if another one works', async () => {
  await letTheWindowPass()
  await expect(syncBalance(deployment(failing, archive), employer)).rejects.toMatchObject({
    code: 'archive-unavailable',
  })
})

test('reports an incomplete range, and tries the next archive', async () => {
  await letTheWindowPass()
  const partial: EventArchive = { ...archive, name: 'https://partial.example', readEvents: async () => NOTHING }
  const NOTHING = { events: [], complete: false }
  await expect(syncBalance(deployment(partial), employer)).rejects.toMatchObject({
    code: 'history-incomplete',
    message: expect.stringMatching(/are missing from https:\/\/partial.example\./),
  })
  expect((await syncBalance(deployment(partial, archive), employer)).spendable.value).toBe(1_000n * USDC)
})

test('names an archive that withholds an event', async () => {
  await pay(employer, contractor.address, 10n * USDC)
  await letTheWindowPass()
  const lying: EventArchive = {
    ...archive,
    readEvents: async (...range) => {
      const { events } = await archive.readEvents(...range)
      return { events: events.slice(0, -1), complete: true }
    },
  }
  await expect(syncBalance(deployment(lying), contractor)).rejects.toMatchObject({
    code: 'history-incomplete',
    message: expect.stringContaining(`${archive.name} lacks some or altered some`),
  })
})

test('skips an archive that began after the registration', async () => {
  await pay(employer, contractor.address, 10n * USDC)
  await letTheWindowPass()
  const late: EventArchive = {
    name: 'https://late.example',
    findStart: async () => undefined,
    readEvents: async () => ({ events: [], complete: true }),
  }
  expect((await syncBalance(deployment(late, archive), contractor)).receiving.value).toBe(10n * USDC)
  await expect(syncBalance(deployment(late), contractor)).rejects.toMatchObject({
    code: 'history-incomplete',
    message: expect.stringContaining('https://late.example lacks some'),
  })
})

test.each([
  ['events of other ledgers', (page: Page) => ({ ...page, events: page.events.map(laterBy(1_000)) })],
  ['events out of order', (page: Page) => ({ ...page, events: page.events.toReversed() })],
  ['an event that cannot be read', (page: Page) => ({ ...page, events: page.events.map(broken) })],
  ['an empty page that is not the last', (page: Page) => ({ ...page, events: [], cursor: page.events[0]?.id })],
  ['something other than events', () => ({})],
])('an archive that returned %s is unavailable', async (problem, change) => {
  await pay(employer, contractor.address, 10n * USDC)
  const lying = await serveLocally(async (request, response) => {
    const page = (await (await fetch(`${service.base}/api/archive${request.url}`)).json()) as Page
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(page.events ? change(page) : page))
  })
  await letTheWindowPass()
  const liar = openHttpArchive(lying.url, service.ledger.network.token)
  await expect(syncBalance(deployment(liar), contractor)).rejects.toMatchObject({
    code: 'archive-unavailable',
    message: expect.stringContaining(problem),
  })
  await lying.close()
})

interface Page {
  events: { id: string; topics_xdr: string[] }[]
  cursor: string | null
}

const laterBy = (ledgers: number) => (event: Page['events'][number]) => ({
  ...event,
  id: `${String(BigInt(event.id.slice(0, 19)) + (BigInt(ledgers) << 32n)).padStart(19, '0')}${event.id.slice(19)}`,
})
const broken = (event: Page['events'][number]) => ({ ...event, topics_xdr: ['AAAA'] })

test('retries an archive that asks to wait', async () => {
  const waits: number[] = []
  let asked = 0
  const busy = await serveLocally(async (request, response) => {
    asked += 1
    if (asked <= 2) return response.writeHead(429, { 'Retry-After': '3' }).end()
    const answer = await fetch(`${service.base}/api/archive${request.url}`)
    response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(await answer.text())
  })
  await letTheWindowPass()
  const patient = openHttpArchive(busy.url, service.ledger.network.token, async (ms) => waits.push(ms))
  expect((await syncBalance(deployment(patient), employer)).spendable.value).toBe(1_000n * USDC)
  expect(waits).toEqual([3_000, 3_000])
  await busy.close()
})
