import { expect, test } from 'vitest'
import { payBatch } from '#lib/sdk/batch-payment.ts'
import type { BatchProgress } from '#lib/sdk/batch-request.ts'
import { readStatement } from '#lib/sdk/own-statement.ts'
import { runBatch } from '#lib/sdk/run.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { readPastDelegations } from '#lib/wallet/escrow.ts'
import {
  AMOUNTS,
  call,
  callsOf,
  interruptAt,
  type Payroll,
  payees,
  prepare,
  prepareDifferently,
  receivedBy,
  requestOf,
  serveWalletRuns,
  service,
  TOTAL,
} from './wallet-runs.ts'

// An employer's client that pays a batch by its own transfers.

serveWalletRuns()

const ALL = { paid: 3, payouts: 3 }
const isTransfer = ({ method, url }: Request) => method === 'POST' && url.endsWith('/transfer')
const isCall = ({ method, url }: Request) => method === 'POST' && url.endsWith('/calls')

/** Interrupts a client at the first such request. Resolves to a function that sends this request to the service, once. */
async function withhold(payroll: Payroll, isMeant: (request: Request) => boolean): Promise<() => Promise<void>> {
  let withheld: Request | undefined
  const interrupting = async (request: Request) => {
    if (!isMeant(request)) return await call(request)
    withheld = request
    throw new Error('interrupted')
  }
  await expect(requestOf(payroll, interrupting).then(payBatch)).rejects.toThrow('interrupted')
  return async () => {
    const first = withheld
    withheld = undefined
    if (first) await call(first)
  }
}

const paidSince = async (before: readonly bigint[]) =>
  (await receivedBy()).map((received, index) => received - (before[index] ?? 0n))

/** Requires each payee's payment once, by transfers of the employer. */
async function expectPaid({ employer, batch }: Payroll, before: readonly bigint[], balance = 100_0000000n) {
  expect(await paidSince(before)).toEqual(AMOUNTS)
  const { body } = await service.ask('GET', `/batches/${batch}`, { session: employer.session })
  expect(body).toMatchObject({ status: 'completed', settledCount: 3 })
  expect((await syncBalance(service.ledger.network, employer)).spendable.value).toBe(balance - TOTAL)
}

test('locks a draft, pays it in order and says how far it is; repeated, it sends nothing', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  // Instructions, lock, three transfers.
  const { fetch, state } = interruptAt(6, 'before')
  const steps: BatchProgress[] = []
  const request = await requestOf(payroll, fetch)
  expect(await payBatch({ ...request, progress: (step) => steps.push(step) })).toEqual(ALL)
  await expectPaid(payroll, before)
  expect(steps.map(({ step, done }) => `${step} ${done}`)).toEqual([
    ...['looking 0', 'sealing 0', 'paying 0', 'paying 1', 'paying 2', 'paying 3', 'checking 3'],
  ])
  const events: number[] = []
  const progress = ({ done, of }: { done: number; of: number }) => events.push(done - of)
  const { lines, problems } = await readStatement(request.deployment, payroll.employer, { progress })
  expect(events.at(-1)).toBe(0)
  expect(problems).toEqual([])
  const sent = lines.filter(({ direction }) => direction === 'sent')
  expect(sent.map(({ amount, counterparty }) => [amount, counterparty])).toEqual(
    AMOUNTS.map((amount, index) => [amount, payees[index]?.address]),
  )
  expect(await payBatch(await requestOf(payroll, fetch))).toEqual(ALL)
  expect(state.isCut).toBe(false)
  expect(await callsOf(payroll)).toEqual(['transfer', 'transfer', 'transfer'])
})

test.each([
  ['after the instructions', 1, 'after'],
  ['before the lock', 2, 'before'],
  ['after the first transfer', 3, 'after'],
  ['before the second transfer', 4, 'before'],
  ['after the last transfer', 5, 'after'],
] as const)('continues after an interruption %s', async (_, nth, when) => {
  const payroll = await prepare()
  const before = await receivedBy()
  await expect(requestOf(payroll, interruptAt(nth, when).fetch).then(payBatch)).rejects.toThrow('interrupted')
  expect(await payBatch(await requestOf(payroll))).toEqual(ALL)
  await expectPaid(payroll, before)
})

test('pays once although the service withholds a transfer until the next call has read what is paid', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const release = await withhold(payroll, isTransfer)
  const releasing = async (request: Request) => {
    if (isTransfer(request)) await release()
    return await call(request)
  }
  const lines: string[] = []
  const request = await requestOf(payroll, releasing)
  expect(await payBatch({ ...request, say: (line) => lines.push(line) })).toEqual(ALL)
  expect(lines).toContainEqual(expect.stringMatching(/^Trying again: /))
  await expectPaid(payroll, before)
})

test('believes no service that only says that it has paid', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const boasting = async (request: Request) =>
    isTransfer(request) ? Response.json({ hash: 'ab'.repeat(32), status: 'SUCCESS' }) : await call(request)
  const request = await requestOf(payroll, boasting)
  await expect(payBatch({ ...request, seenMs: 0 })).rejects.toMatchObject({ code: 'not-on-ledger' })
  expect(await receivedBy()).toEqual(before)
})

test('locks no batch that the balance does not cover', async () => {
  const payroll = await prepare(TOTAL - 1n)
  await expect(requestOf(payroll).then(payBatch)).rejects.toMatchObject({
    ...{ code: 'balance-too-low', needed: TOTAL, available: TOTAL - 1n },
  })
  const { body } = await service.ask('GET', `/batches/${payroll.batch}`, { session: payroll.employer.session })
  expect(body).toMatchObject({ status: 'draft', payoutCount: 0 })
})

test('merges what it needs, and pays a batch that is locked already', async () => {
  const payroll = await prepareDifferently()
  const before = await receivedBy()
  expect(await payBatch(await requestOf(payroll))).toEqual(ALL)
  // The rest is in an escrow that was made without the notes.
  await expectPaid(payroll, before, 100_0000000n - 5n)
})

test('takes back the escrows of a run that did not start, and pays nothing while one is running', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const request = await requestOf(payroll, async (one) => {
    if (one.method === 'POST' && one.url.endsWith('/run')) throw new Error('interrupted')
    return await call(one)
  })
  await expect(runBatch(request)).rejects.toThrow('interrupted')
  const running = await requestOf(payroll, async (one) => {
    const response = await call(one)
    if (!one.url.endsWith('/status')) return response
    return Response.json({ ...(await response.json()), run: { status: 'running' } })
  })
  await expect(payBatch(running)).rejects.toMatchObject({ code: 'not-started' })
  expect(await payBatch(await requestOf(payroll))).toEqual(ALL)
  await expectPaid(payroll, before)
  expect([...(await readPastDelegations(service.ledger.network, payroll.employer)).keys()]).toHaveLength(2)
  expect(await callsOf(payroll)).toContain('revoke_spender')
})

test('ends between two transfers when it is aborted, and continues', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const leaving = new AbortController()
  const request = await requestOf(payroll)
  const progress = ({ step, done }: BatchProgress) =>
    step === 'paying' && done === 1 && leaving.abort(new Error('left'))
  await expect(payBatch({ ...request, progress, signal: leaving.signal })).rejects.toThrow('left')
  expect(await payBatch(await requestOf(payroll))).toEqual(ALL)
  await expectPaid(payroll, before)
})

/** A service that shows payouts of the batch as unpaid, under other ids if it is told, and pays them without their payouts. */
function forgetful({ batch }: Payroll, rename = (id: string) => id) {
  return async (request: Request): Promise<Response> => {
    if (isTransfer(request)) {
      const { signedXDR } = (await request.clone().json()) as { signedXDR: string }
      const { headers, method } = request
      return await call(new Request(request.url, { method, headers, body: JSON.stringify({ signedXDR }) }))
    }
    const response = await call(request)
    const { pathname } = new URL(request.url)
    if (!response.ok || !pathname.endsWith(`/batches/${batch}`)) return response
    const { payouts, ...rest } = (await response.json()) as { payouts: { id: string }[] }
    const shown = payouts.map(({ id, ...payout }) => ({
      ...payout,
      id: rename(id),
      status: 'ready',
      txHash: undefined,
    }))
    return Response.json({ ...rest, status: 'ready', payouts: shown }, { headers: response.headers })
  }
}

test('pays nothing again although one node of the RPC does not show the payment yet', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const release = await withhold(payroll, isTransfer)
  const { rpc } = service.ledger.network
  const { sequence } = await rpc.getLatestLedger()
  await release()
  // The second reading of events is that of the payments: the first one was that of the balance.
  let readings = 0
  const getEvents = async (...given: Parameters<typeof rpc.getEvents>) => {
    const page = await rpc.getEvents(...given)
    readings += 1
    if (readings !== 2) return page
    return { ...page, events: page.events.filter(({ ledger }) => ledger <= sequence), latestLedger: sequence }
  }
  const request = await requestOf(payroll, forgetful(payroll))
  const lagging = new Proxy(rpc, {
    get: (target, name) => {
      if (name === 'getEvents') return getEvents
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  expect(await payBatch({ ...request, deployment: { ...request.deployment, rpc: lagging } })).toEqual(ALL)
  expect(readings).toBeGreaterThan(2)
  expect(await paidSince(before)).toEqual(AMOUNTS)
})

test('asks what payments were for that a device without their notes finds, with notes of other batches', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  expect(await payBatch(await requestOf(payroll))).toEqual(ALL)
  const names = new Map<string, string>()
  const rename = (id: string) => {
    const name = names.get(id) ?? crypto.randomUUID()
    names.set(id, name)
    return name
  }
  const request = await requestOf({ ...payroll, file: `${payroll.file}.other` }, forgetful(payroll, rename))
  const { address } = payroll.employer
  const [other, payout] = [crypto.randomUUID(), crypto.randomUUID()]
  request.notes.addPayouts([{ batch: other, address, payout, at: new Date(Date.now() + 60_000).toISOString() }])
  await expect(payBatch(request)).rejects.toMatchObject({ code: 'payment-unknown' })
  expect(await paidSince(before)).toEqual(AMOUNTS)
})

test('continues after an interruption of its merge, which is applied later', async () => {
  const payroll = await prepareDifferently()
  const before = await receivedBy()
  const release = await withhold(payroll, isCall)
  const releasing = async (request: Request) => {
    if (isCall(request)) await release()
    return await call(request)
  }
  expect(await payBatch(await requestOf(payroll, releasing))).toEqual(ALL)
  await expectPaid(payroll, before, 100_0000000n - 5n)
})

test('pays nothing while an escrow of its own run is open that another batch is said to need', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  const starting = async (one: Request) => {
    if (one.method === 'POST' && one.url.endsWith('/run')) throw new Error('interrupted')
    return await call(one)
  }
  const started = await requestOf(payroll, starting)
  await expect(runBatch(started)).rejects.toThrow('interrupted')
  const { body } = await service.ask('POST', '/batches', {
    session: payroll.employer.session,
    body: { name: 'earlier' },
  })
  const earlier = String(body.id)
  const lying = async (one: Request) => {
    const response = await call(one)
    if (!one.url.endsWith(`/${earlier}/status`)) return response
    return Response.json({ ...(await response.json()), run: { status: 'running' } })
  }
  // The earlier batch noted the escrows first.
  const request = await requestOf({ ...payroll, file: `${payroll.file}.other` }, lying)
  for (const batch of [earlier, payroll.batch]) {
    for (const one of started.notes.delegations()) request.notes.addDelegation({ ...one, batch })
  }
  await expect(payBatch(request)).rejects.toMatchObject({ code: 'channel-busy' })
  expect(await receivedBy()).toEqual(before)
})
