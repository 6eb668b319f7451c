import { existsSync, readFileSync } from 'node:fs'
import { Keypair } from '@stellar/stellar-sdk'
import { expect, onTestFinished, test, vi } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { readAmounts } from '#lib/cli/client/amounts-file.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { signRun } from '#lib/cli/client/run-signature.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import type { BatchProgress } from '#lib/sdk/batch-request.ts'
import { runBatch } from '#lib/sdk/run.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { readPastDelegations } from '#lib/wallet/escrow.ts'
import type { Fault } from '../support/fault-proxy.ts'

import {
  AMOUNTS,
  call,
  callsOf,
  expectPaidOnce,
  interruptAt,
  payees,
  prepare,
  receivedBy,
  requestOf,
  serveWalletRuns,
  service,
  TOTAL,
} from './wallet-runs.ts'

serveWalletRuns()

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

test('says how far it is, ends between two steps when it is aborted, and continues', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const leaving = new AbortController()
  const steps: BatchProgress[] = []
  const aborted = {
    signal: leaving.signal,
    progress: ({ step, done }: BatchProgress) =>
      step === 'delegating' && done === 1 && leaving.abort(new Error('left')),
  }
  const request = await requestOf(payroll)
  await expect(runBatch({ ...request, ...aborted })).rejects.toThrow('left')
  const again = await requestOf(payroll)
  expect(await runBatch({ ...again, progress: (progress) => steps.push(progress) })).toEqual({ paid: 3, payouts: 3 })
  await expectPaidOnce(payroll, before)
  expect([...new Set(steps.map(({ step }) => step))]).toEqual([
    'looking',
    'sealing',
    'delegating',
    'paying',
    'checking',
  ])
  expect(steps.filter(({ step }) => step === 'paying').at(-1)).toMatchObject({ done: 3, of: 3 })
  expect(await callsOf(payroll)).toEqual(['revoke_spender', 'revoke_spender', 'set_spender', 'set_spender'])
})

test('locks no batch that the balance does not cover, and says what is needed and available', async () => {
  const payroll = await prepare(TOTAL - 1n)
  const before = await receivedBy()
  await expect(requestOf(payroll).then(runBatch)).rejects.toMatchObject({
    ...{ name: 'WalletError', code: 'balance-too-low', needed: TOTAL, available: TOTAL - 1n },
    message: 'the list needs 3.5000004, and 3.5000003 is available',
  })
  const { body } = await service.ask('GET', `/batches/${payroll.batch}`, { session: payroll.employer.session })
  expect(body).toMatchObject({ status: 'draft', payoutCount: 0 })
  expect(await receivedBy()).toEqual(before)
  expect(await callsOf(payroll)).toEqual([])
})

test('neither seals nor delegates if the API names a different key or channel from the document', async () => {
  const payroll = await prepare()
  const [channel] = service.channels
  const other = { ...publicHalf(service.key), x: publicHalf(service.key).y }
  const relays = [
    undefined,
    { publicKey: other, channels: service.channels.map((each) => each.publicKey()) },
    { publicKey: publicHalf(service.key), channels: [payroll.employer.address] },
  ]
  for (const untrusted of relays) {
    const request = await requestOf(payroll, call, { relay: untrusted })
    await expect(runBatch(request)).rejects.toMatchObject({ code: 'relay-unknown' })
    expect(existsSync(payroll.file) ? readFileSync(payroll.file, 'utf8') : '').not.toMatch(/ (seal|delegation) /)
  }
  const delegated = async () => [...(await readPastDelegations(service.ledger.network, payroll.employer)).keys()]
  expect(await delegated()).toEqual([])
  // A channel that the document lacks is left out.
  const trusted = { publicKey: publicHalf(service.key), channels: [channel?.publicKey() ?? ''] }
  expect(await runBatch(await requestOf(payroll, call, { relay: trusted }))).toEqual({ paid: 3, payouts: 3 })
  expect(await delegated()).toEqual(trusted.channels)
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
  expect(JSON.parse(await signRun(request, request.payees)).signature).toMatch(/^[\w+/]{86}==$/)
  const dearer = request.payees.map((payee) => ({ ...payee, amount: payee.amount + 1n }))
  await expect(signRun(request, dearer)).rejects.toMatchObject({ code: 'not-started' })
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
