import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { readAmounts } from '#lib/cli/client/amounts-file.ts'
import { endow, enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { signRun } from '#lib/cli/client/run-signature.ts'
import { sealsFile } from '#lib/cli/client/seals-file.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { openSeals } from '#lib/sdk/own-seals.ts'
import { matchPayees } from '#lib/sdk/payees.ts'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import { runBatch } from '#lib/sdk/run.ts'
import type { RunRequest } from '#lib/sdk/run-request.ts'
import { formatUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDelegation } from '#lib/wallet/calls.ts'
import { readOwnDelegations, readPastDelegations } from '#lib/wallet/escrow.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { openApi } from '../support/api.ts'
import type { Fault } from '../support/fault-proxy.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

let service: RelayService
let call: (request: Request) => Promise<Response>
let payees: Holder[]
let relay: Awaited<ReturnType<RelayService['relay']>>
const folder = mkdtempSync(join(tmpdir(), 'wallet-run-'))
beforeAll(async () => {
  service = await openRelayService({ channels: 2 })
  const api = await openApi()
  // The test's ledger closes ten times a second, and a delegation must not end because a test is slow.
  call = async (request) => {
    const response = await api(request)
    if (!request.url.endsWith('/relay') || !response.ok) return response
    return Response.json({ ...(await response.json()), marginLedgers: 50_000 })
  }
  payees = [await service.payee(), await service.payee(), await service.payee()]
  relay = await service.relay()
})
afterAll(async () => {
  await relay?.close()
  await service?.close()
  rmSync(folder, { recursive: true, force: true })
})

const AMOUNTS = [1_0000000n, 2_5000000n, 4n]
const TOTAL = AMOUNTS.reduce((sum, amount) => sum + amount, 0n)

interface Payroll {
  employer: SignedInPayer
  contractors: string[]
  batch: string
  list: string
  file: string
}

/** An employer with three contractors, a list of amounts, and a draft batch without payouts. */
async function prepare(balance = 100_0000000n): Promise<Payroll> {
  const employer = await service.employ(balance)
  const post = async (path: string, body: unknown) => {
    const { body: answer } = await service.ask('POST', path, { session: employer.session, body })
    return String(answer.id)
  }
  const contractors = []
  for (const [index, { address }] of payees.entries()) {
    contractors.push(await post('/contractors', { name: `Payee ${index}`, address }))
  }
  const batch = await post('/batches', { name: 'a run' })
  const rows = payees.map(({ address }, index) => `${address},${formatUnits(AMOUNTS[index] ?? 0n)},${address}`)
  const list = ['contractor,amount,address', ...rows].join('\n')
  return { employer, contractors, batch, list, file: join(folder, batch) }
}

/** The same with a locked batch and its seals to replace, a delegation that is too short, and a balance to merge. */
async function prepareDifferently(): Promise<Payroll> {
  const { network, issuer } = service.ledger
  const payroll = await prepare(5n)
  const { employer, contractors, batch } = payroll
  const instructions = contractors.map((contractorId) => ({ contractorId, encryptedAmount: 'a note' }))
  await service.ask('POST', `/batches/${batch}/instructions`, { session: employer.session, body: { instructions } })
  await service.ask('POST', `/batches/${batch}/ready`, { session: employer.session })
  const spender = service.channels[0]?.publicKey() ?? ''
  const { sequence } = await network.rpc.getLatestLedger()
  const short = { spender, amount: 5n, opening: employer.opening, liveUntilLedger: sequence + 60 }
  await sendAndWait(network, (await buildDelegation(network, employer, short)).signedXdr)
  await endow(network, issuer, employer, 100_0000000n - 5n, async () => undefined)
  return payroll
}

/** A `fetch` that loses the nth POST, before or after the service has handled it, and every request from then on. */
function interruptAt(nth: number, when: 'before' | 'after') {
  let posts = 0
  const state = { isCut: false }
  const fetch = async (request: Request): Promise<Response> => {
    if (state.isCut) throw new Error('interrupted')
    if (request.method === 'POST') posts += 1
    state.isCut = posts === nth
    if (state.isCut && when === 'before') throw new Error('interrupted')
    const response = await call(request)
    if (state.isCut) throw new Error('interrupted')
    return response
  }
  return { fetch, state }
}

async function requestOf(payroll: Payroll, fetch = call, changes: Partial<RunRequest> = {}): Promise<RunRequest> {
  const { employer, batch, list, file } = payroll
  const client = createPayrollClient({ baseUrl: 'http://localhost:3000/api', session: employer.session, fetch })
  return {
    deployment: service.ledger.network,
    client,
    holder: employer,
    relay: { publicKey: publicHalf(service.key), channels: service.channels.map((channel) => channel.publicKey()) },
    batch,
    payees: await matchPayees(client, readAmounts(list)),
    seals: openSeals(employer, sealsFile(file)),
    channels: 2,
    revokes: true,
    say: () => undefined,
    ...changes,
  }
}

const receivedBy = () => Promise.all(payees.map((payee) => service.received(payee)))

/** Requires each payee's payment once, these numbers of delegations, and everything else back with the employer. */
async function expectPaidOnce(
  { employer, file, batch }: Payroll,
  before: readonly bigint[],
  delegations = [1, 1],
): Promise<void> {
  const { network } = service.ledger
  expect((await receivedBy()).map((received, index) => received - (before[index] ?? 0n))).toEqual(AMOUNTS)
  const { body } = await service.ask('GET', `/batches/${batch}`, { session: employer.session })
  expect(body).toMatchObject({ status: 'completed', settledCount: 3 })
  const past = await readPastDelegations(network, employer)
  expect([...past.values()].map((ledgers) => ledgers.length).toSorted()).toEqual(delegations)
  expect((await readOwnDelegations(network, employer, [...past.keys()])).delegations).toEqual([])
  expect((await syncBalance(network, employer)).spendable.value).toBe(100_0000000n - TOTAL)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  for (const amount of AMOUNTS) expect(readFileSync(file, 'utf8')).not.toContain(` ${amount} `)
}

/** Instructions, lock, two delegations, start, two revocations. */
const POSTS = 7

test('does everything with seven requests, and nothing when it is repeated', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const { fetch, state } = interruptAt(POSTS + 1, 'before')
  expect(await runBatch(await requestOf(payroll, fetch))).toEqual({ paid: 3, payouts: 3 })
  await expectPaidOnce(payroll, before)
  expect(await runBatch(await requestOf(payroll, fetch))).toEqual({ paid: 3, payouts: 3 })
  expect(state.isCut).toBe(false)
  await expectPaidOnce(payroll, before)
})

// To the service, a later request that is lost on its way is the same as the response to the one before.
const INTERRUPTIONS = [
  ['before', 1] as const,
  ...Array.from({ length: POSTS }, (_, index) => ['after', index + 1] as const),
]

test.each(INTERRUPTIONS)('continues after an interruption %s request %d', async (when, nth) => {
  const payroll = await prepare()
  const before = await receivedBy()
  const { fetch, state } = interruptAt(nth, when)
  await expect(requestOf(payroll, fetch).then(runBatch)).rejects.toThrow()
  expect(state.isCut).toBe(true)
  expect(await runBatch(await requestOf(payroll))).toEqual({ paid: 3, payouts: 3 })
  await expectPaidOnce(payroll, before)
})

test.each([1, 2, 3, 4, 5])(
  'replaces seals and a delegation, and merges, once each after request %d is cut',
  async (nth) => {
    const payroll = await prepareDifferently()
    const before = await receivedBy()
    const { fetch, state } = interruptAt(nth, 'after')
    await expect(requestOf(payroll, fetch).then(runBatch)).rejects.toThrow()
    expect(state.isCut).toBe(true)
    expect(await runBatch(await requestOf(payroll))).toEqual({ paid: 3, payouts: 3 })
    await expectPaidOnce(payroll, before, [1, 2])
    // The short delegation was not sent through the service.
    const calls = ['merge', 'revoke_spender', 'revoke_spender', 'revoke_spender', 'set_spender', 'set_spender']
    expect(await callsOf(payroll)).toEqual(calls)
  },
)

/** What the service has sponsored for the employer, other than payments. */
async function callsOf({ employer }: Payroll): Promise<string[]> {
  const transfers = await service.db.query.transfers.findMany()
  const own = transfers.filter(({ account, status }) => account === employer.address && status === 'succeeded')
  return own.map(({ kind }) => kind).toSorted()
}

test('delegates once even if the service is still sending the call when the client dies', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const [sending, arrival] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method === 'sendTransaction') {
      sending.resolve()
      await arrival.promise
    }
    return 'pass'
  })
  onTestFinished(() => {
    arrival.resolve()
    service.ledger.proxy.rule(null)
  })
  const isCall = ({ method, url }: Request) => method === 'POST' && url.endsWith('/calls')
  let abandoned: Promise<Response> | undefined
  const dying = async (request: Request) => {
    if (!isCall(request)) return await call(request)
    abandoned = call(request)
    await sending.promise
    throw new Error('interrupted')
  }
  await expect(requestOf(payroll, dying).then(runBatch)).rejects.toThrow()
  const rivals = async () => (await service.db.query.envelopes.findMany()).length
  const count = await rivals()
  const second = async (request: Request) => {
    const response = call(request)
    if (isCall(request)) {
      const isRecorded = vi.waitUntil(async () => (await rivals()) > count, { timeout: 300_000, interval: 20 })
      await Promise.race([response, isRecorded])
      arrival.resolve()
    }
    return await response
  }
  expect(await runBatch(await requestOf(payroll, second))).toEqual({ paid: 3, payouts: 3 })
  await abandoned
  await expectPaidOnce(payroll, before)
  expect(await callsOf(payroll)).toEqual(['revoke_spender', 'revoke_spender', 'set_spender', 'set_spender'])
})

test('replaces seals that it does not recognize, and pays the amounts of the list', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const { fetch } = interruptAt(3, 'before')
  await expect(requestOf(payroll, fetch).then(runBatch)).rejects.toThrow()
  // Someone else's seals, whose amounts are not those of the list.
  const forger = await prepare()
  await expect(
    requestOf(
      { ...payroll, file: forger.file, list: payroll.list.replaceAll(/,\d+\.\d+,/g, ',9,') },
      interruptAt(2, 'before').fetch,
    ).then(runBatch),
  ).rejects.toThrow()
  expect(await runBatch(await requestOf(payroll))).toEqual({ paid: 3, payouts: 3 })
  await expectPaidOnce(payroll, before)
})

test('neither seals nor delegates if the API names a different key or channel from the document', async () => {
  const payroll = await prepare()
  const [channel] = service.channels
  const other = { ...publicHalf(service.key), x: publicHalf(service.key).y }
  const relays = [
    undefined,
    { publicKey: other, channels: service.channels.map((each) => each.publicKey()) },
    { publicKey: publicHalf(service.key), channels: [channel?.publicKey() ?? ''] },
  ]
  for (const untrusted of relays) {
    const request = await requestOf(payroll, call, { relay: untrusted })
    await expect(runBatch(request)).rejects.toMatchObject({ code: 'relay-unknown' })
    expect(request.seals.channelsOf(payroll.batch)).toEqual([])
  }
  expect([...(await readPastDelegations(service.ledger.network, payroll.employer)).keys()]).toEqual([])
})

test('refuses an address other than the list’s, and signs nothing that it did not seal', async () => {
  const payroll = await prepare()
  const [first = '', second = ''] = payees.map(({ address }) => address)
  await expect(requestOf({ ...payroll, list: `${first},1,${second}` })).rejects.toMatchObject({
    code: 'list-differs',
    message: expect.stringContaining('another address'),
  })
  await expect(requestOf({ ...payroll, list: `${first},1\n${first},2` })).rejects.toThrow('twice')
  const { fetch } = interruptAt(5, 'before')
  await expect(requestOf(payroll, fetch).then(runBatch)).rejects.toThrow()
  const request = await requestOf(payroll)
  const own = { payees: request.payees, seals: request.seals }
  expect(JSON.parse(await signRun(request, own)).signature).toMatch(/^[\w+/]{86}==$/)
  const dearer = request.payees.map((payee) => ({ ...payee, amount: payee.amount + 1n }))
  await expect(signRun(request, { ...own, payees: dearer })).rejects.toMatchObject({ code: 'not-started' })
})

test('starts nothing while no channel of the relay is available', async () => {
  const payroll = await prepare()
  const { network } = service.ledger
  await service.db.update(relayChannels).set({ paused: true })
  const run = runBatch(await requestOf(payroll))
  await expect(run.finally(() => service.db.update(relayChannels).set({ paused: false }))).rejects.toMatchObject({
    code: 'no-channel',
  })
  expect([...(await readPastDelegations(network, payroll.employer)).keys()]).toEqual([])
})

test('reports payouts that failed, returns their amounts, and pays them in another run', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const stranger = Keypair.random()
  const address = stranger.publicKey()
  await service.hire(payroll.employer, [address])
  const all = { ...payroll, list: `${payroll.list}\n${address},5,${address}` }
  const run = runBatch(await requestOf(all))
  await expect(run).rejects.toMatchObject({ code: 'payouts-failed', message: expect.stringContaining('1 of 4') })
  const { network } = service.ledger
  const balance = async () => (await syncBalance(network, payroll.employer)).spendable.value
  expect(await balance()).toBe(100_0000000n - TOTAL)
  // Once the payee has registered, another run pays what is left, also after an interruption of its delegation.
  const registered = await enrol(network, stranger)
  await expect(requestOf(all, interruptAt(1, 'after').fetch).then(runBatch)).rejects.toThrow()
  expect(await runBatch(await requestOf(all))).toEqual({ paid: 4, payouts: 4 })
  expect((await receivedBy()).map((received, index) => received - (before[index] ?? 0n))).toEqual(AMOUNTS)
  expect(await service.received(registered)).toBe(5_0000000n)
  expect(await balance()).toBe(100_0000000n - TOTAL - 5_0000000n)
  expect((await callsOf(payroll)).filter((kind) => kind === 'set_spender')).toHaveLength(3)
})

test.each(['a,0', 'a,1.12345678', 'a,-1', 'a', 'a,1,b,c', ''])('refuses %j as a list of amounts', (text) => {
  expect(() => readAmounts(text)).toThrow()
})
