import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { afterMaxTime, beforeFirst, next, notFound, sendAnswer, withholdAnd } from '../support/transfers.ts'
import { bareResult } from '../transfers/ledger-answers.ts'
import { FAUCET, type Faucet, openFaucet, type Person, startAnother } from './faucet.ts'

let service: TestService<'embedded'>
let faucet: Faucet
beforeAll(async () => {
  service = await openTestService(FAUCET)
  faucet = openFaucet(service)
})
afterAll(() => service?.close())
afterEach(() => service.ledger.proxy.rule(null))

/** Requires that the response has the hash of the only deposit, and that the faucet serves the next request. */
async function expectGranted(person: Person, answer: { status: number; body: Record<string, unknown> }): Promise<void> {
  expect(answer).toMatchObject({ status: 200 })
  expect(await faucet.deposits(person.address)).toEqual([answer.body.hash])
  service.ledger.proxy.rule(null)
  const follower = await faucet.settle()
  expect(await faucet.ask(follower.session)).toMatchObject({ status: 200 })
  expect(await faucet.deposits(person.address)).toHaveLength(1)
}

// The tests of transfers cover the other failures of submission and tracking.
const faults: [string, () => (call: Call) => Fault][] = [
  ['a deposit that is lost', () => next('sendTransaction', 1, { answer: sendAnswer('PENDING') })],
  ['a false txBAD_SEQ', () => next('sendTransaction', 1, { answer: sendAnswer('ERROR', bareResult('txBadSeq')) })],
  ['simulations that fail in transit', () => next('simulateTransaction', 2, { status: 500 })],
  ['a simulation that hangs', () => next('simulateTransaction', 1, { hang: true, delivered: false })],
]
test.each(faults)('makes one deposit despite %s', async (_, fault) => {
  const person = await faucet.settle()
  service.ledger.proxy.rule(fault())
  await expectGranted(person, await faucet.ask(person.session))
})

test('responds 503 while the RPC is unreachable, without starting the cool-down', async () => {
  const person = await faucet.settle()
  service.ledger.proxy.rule(() => ({ status: 503 }))
  expect(await faucet.ask(person.session)).toEqual({
    status: 503,
    retryAfter: '5',
    body: { error: 'the ledger cannot be reached', code: 'unavailable' },
  })
  expect(await faucet.grant(person.address)).toBeUndefined()
  service.ledger.proxy.rule(null)
  expect(await faucet.ask(person.session)).toMatchObject({ status: 200 })
})

test('records no deposit whose number another service has used since it was read', async () => {
  const another = await startAnother(service)
  const [person, rival] = [await faucet.settle(), await faucet.settle()]
  let isFirst = true
  const refused: unknown[] = []
  service.ledger.proxy.rule(async ({ method }) => {
    if (method === 'simulateTransaction' && isFirst) {
      isFirst = false
      expect(await faucet.ask(rival.session, another)).toMatchObject({ status: 200 })
    }
    const note = (sent: Record<string, unknown>) => {
      if (sent.status === 'ERROR') refused.push(sent)
      return sent
    }
    return method === 'sendTransaction' ? { rewrite: note } : 'pass'
  })
  expect(await faucet.ask(person.session)).toMatchObject({ status: 200 })
  expect(refused).toEqual([])
  await another.close()
})

describe('a sequence number that another transaction uses', () => {
  test('rereads the account and signs the deposit again, if used between signing and submission', async () => {
    const person = await faucet.settle()
    const rival = await faucet.settle()
    const sent: unknown[] = []
    const overtake = beforeFirst('sendTransaction', () => faucet.overtake(rival))
    service.ledger.proxy.rule(async (call): Promise<Fault> => {
      if (call.method === 'sendTransaction') sent.push(call.params.transaction)
      return await overtake(call)
    })
    await expectGranted(person, await faucet.ask(person.session))
    expect(new Set(sent).size).toBe(2)
    expect(await faucet.deposits(rival.address)).toHaveLength(1)
  })
})

describe('a request that waits longer than TRANSFER_WAIT', () => {
  test('grants nothing if nothing has been signed', async () => {
    const another = await startAnother(service, { TRANSFER_WAIT: '1' })
    const person = await faucet.settle()
    service.ledger.proxy.rule(({ method }) => (method === 'simulateTransaction' ? { status: 500 } : 'pass'))
    expect(await faucet.ask(person.session, another)).toEqual({
      status: 503,
      retryAfter: '5',
      body: { error: 'the faucet is busy: nothing was granted', code: 'faucet-busy' },
    })
    expect(await faucet.grant(person.address)).toBeUndefined()
    await another.close()
    service.ledger.proxy.rule(null)
    await expectGranted(person, await faucet.ask(person.session))
  })

  test('keeps the grant if the deposit has been submitted, and settles it without a request', async () => {
    const another = await startAnother(service, { TRANSFER_WAIT: '1' })
    const person = await faucet.settle()
    service.ledger.proxy.rule(({ method }) => (method === 'getTransaction' ? { status: 500 } : 'pass'))
    expect(await faucet.ask(person.session, another)).toEqual({
      status: 503,
      retryAfter: '5',
      body: { error: 'it is not known yet whether the deposit was applied', code: 'deposit-open' },
    })
    expect(await faucet.ask(person.session, another)).toMatchObject({ status: 429 })
    service.ledger.proxy.rule(null)
    await expect.poll(async () => (await faucet.grant(person.address))?.status).toBe('granted')
    expect(await faucet.deposits(person.address)).toHaveLength(1)
    await another.close()
  })
})

test.each([-300, 300])('grants although its clock is off by %i s', async (seconds) => {
  const person = await faucet.settle()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1000 })
  const answer = await faucet.ask(person.session).finally(() => vi.useRealTimers())
  await expectGranted(person, answer)
})

test('returns the grant of a deposit that expired by the ledger’s time, and grants the next call', async () => {
  const person = await faucet.settle()
  service.ledger.proxy.rule(withholdAnd(afterMaxTime))
  const failure = { status: 500, body: { error: 'the deposit failed', code: 'deposit-failed' } }
  expect(await faucet.ask(person.session)).toMatchObject(failure)
  expect(await faucet.grant(person.address)).toMatchObject({ status: 'returned' })
  expect(await faucet.deposits(person.address)).toEqual([])
  service.ledger.proxy.rule(null)
  await expectGranted(person, await faucet.ask(person.session))
})

test('does not return a grant for an RPC without the history, and does not block other grants', async () => {
  const person = await faucet.settle()
  service.ledger.proxy.rule(({ method }): Fault => {
    if (method !== 'getTransaction') return 'pass'
    const future = String(Math.floor(Date.now() / 1000) + 1_000)
    return {
      rewrite: (result) => {
        if (result.status === 'NOT_FOUND') return result
        const { latestLedger } = result
        return { ...notFound(result), latestLedger, latestLedgerCloseTime: future, oldestLedger: latestLedger }
      },
    }
  })
  // The deposit was applied, but the RPC doesn't show it, so the response makes no claim.
  expect(await faucet.ask(person.session)).toMatchObject({ status: 503 })
  expect(await faucet.grant(person.address)).toMatchObject({ status: 'unknown' })
  expect(await faucet.ask(person.session)).toMatchObject({ status: 429 })
  service.ledger.proxy.rule(null)
  const follower = await faucet.settle()
  expect(await faucet.ask(follower.session)).toMatchObject({ status: 200 })
  expect(await faucet.deposits(person.address)).toHaveLength(1)
})

test('records no deposit that the contract would reject', async () => {
  const person = await faucet.settle()
  let sendings = 0
  service.ledger.proxy.rule(({ method }): Fault => {
    if (method === 'sendTransaction') sendings += 1
    if (method !== 'simulateTransaction') return 'pass'
    const error = 'HostError: Error(Contract, #3501)\n\nEvent log (newest first): …'
    return { answer: { latestLedger: 1, error, events: [] } }
  })
  const refusal = { status: 409, body: { error: expect.stringContaining('regist') } }
  expect(await faucet.ask(person.session)).toMatchObject(refusal)
  expect(sendings).toBe(0)
  expect(await faucet.grant(person.address)).toBeUndefined()
  service.ledger.proxy.rule(null)
  await expectGranted(person, await faucet.ask(person.session))
})

test('serves each grant once while database connections break', async () => {
  const people = await Promise.all(Array.from({ length: 4 }, () => faucet.settle()))
  let broken = 0
  service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method === 'sendTransaction' && broken < 3) {
      broken += 1
      await service.db.execute(
        sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      )
    }
    return 'pass'
  })
  await Promise.all(people.map(({ session }) => faucet.ask(session)))
  service.ledger.proxy.rule(null)
  for (const { address } of people) {
    // A user whose claim was cut off retries.
    if (!(await faucet.grant(address))) await faucet.ask(people.find((person) => person.address === address)?.session)
    await expect.poll(async () => (await faucet.grant(address))?.status).toBe('granted')
    expect(await faucet.deposits(address)).toHaveLength(1)
  }
})
