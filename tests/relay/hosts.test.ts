import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { generateRelayKey } from '#lib/config/relay-key.ts'
import { prover } from '#lib/devnet/devnet.ts'
import { startHost } from '#lib/relay/host.ts'
import { openRelay } from '#lib/relay/opening.ts'
import { readiness } from '#lib/server/readiness.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { captureLog } from '../support/console.ts'
import { QUICK } from './quick.ts'
import { startChild } from './relay-child.ts'
import { openWorks, type Works } from './works.ts'

vi.setConfig({ testTimeout: 120_000 })

let works: Works
beforeAll(async () => {
  works = await openWorks({ channels: 6 })
}, 120_000)
afterAll(() => works?.close())
afterEach(() => vi.restoreAllMocks())

test('two relays on one database share the work of many users, and pay every item once', async () => {
  const relays = await Promise.all([startChild(works.variables), startChild(works.variables)])
  try {
    await expect.poll(async () => (await readiness({ ...works.service })).relay.relays, { timeout: 10_000 }).toBe(2)
    const people = await Promise.all(
      Array.from({ length: 10 }, async () => ({ client: await works.client(), payee: await works.payee() })),
    )
    for (const { client, payee } of people) await works.hire(client, [payee.signer.publicKey()])
    const amounts = [1, 2, 4, 8, 16]
    const started = await Promise.all(people.map(({ client }) => works.post(client, { amounts })))
    for (const [index, { client, payee }] of people.entries()) {
      const job = await works.ended(client, String(started[index]?.body.jobId))
      expect(job).toMatchObject({ status: 'completed' })
      expect(job.results).toHaveLength(5)
      expect(await works.received(payee)).toBe(31n)
    }
    const paid = relays.map(({ log }) => log.filter(({ event }) => event === 'item paid').length)
    expect(paid.reduce((sum, count) => sum + count, 0)).toBe(50)
    expect(Math.min(...paid)).toBeGreaterThanOrEqual(10)
  } finally {
    await Promise.all(relays.map((relay) => relay.kill()))
  }
})

test('the channels of a relay that is killed are used by the other', async () => {
  const [doomed, other] = await Promise.all([startChild(works.variables), startChild(works.variables)])
  if (!doomed || !other) throw new Error('a relay is missing')
  try {
    const client = await works.client()
    const payee = await works.payee()
    await works.hire(client, [payee.signer.publicKey()])
    const amounts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    const { jobId } = (await works.post(client, { amounts })).body as { jobId: string }
    await expect
      .poll(() => doomed.log.some(({ event }) => event === 'item paid'), { timeout: 20_000, interval: 10 })
      .toBe(true)
    await doomed.kill()
    expect(await works.ended(client, jobId)).toMatchObject({ status: 'completed' })
    expect(await works.received(payee)).toBe(1023n)
  } finally {
    await other.kill()
  }
})

/** A relay in this process that differs from the others in what is given. */
async function startOdd(given: Partial<Parameters<typeof openRelay>[0]>) {
  const { network, token, database, sponsor, key, channels, now } = await composeRelay(works.service)
  const base = { network, token, database, sponsor, key, channels, now, prover, times: QUICK, unique: 'odd' }
  const { queue } = works.service
  const rest = { queue, sweep: async () => undefined, prepare: async () => undefined, port: 0, network: 'local' }
  return await startHost(openRelay({ ...base, ...given }), { ...rest, mayBeMute: false })
}

test('a relay with another key leaves the items to those that can open them', async () => {
  captureLog()
  const odd = await startOdd({ key: generateRelayKey(), channels: works.channels.slice(0, 3) })
  const client = await works.client()
  const payee = await works.payee()
  await works.hire(client, [payee.signer.publicKey()])
  const { jobId } = (await works.post(client, { amounts: [1, 2, 4] })).body as { jobId: string }
  const other = await startOdd({ unique: 'even', channels: works.channels.slice(3) })
  try {
    expect(await works.ended(client, jobId)).toMatchObject({ status: 'completed' })
    expect(await works.received(payee)).toBe(7n)
  } finally {
    await odd.close()
    await other.close()
  }
})

test('a prover that fails delays a job; what it complains of is not logged', async () => {
  const lines = captureLog()
  let failures = 0
  const moody = {
    prove: async (statement: Parameters<typeof prover.prove>[0]) => {
      failures += 1
      if (failures <= 2) throw new RangeError('vTransfer 8642097531 does not fit')
      return await prover.prove(statement)
    },
  }
  const host = await startOdd({ prover: moody })
  const client = await works.client()
  const payee = await works.payee()
  await works.hire(client, [payee.signer.publicKey()])
  const { jobId } = (await works.post(client, { amounts: [8_642_097_531] })).body as { jobId: string }
  try {
    expect(await works.ended(client, jobId)).toMatchObject({ status: 'completed' })
    expect(failures).toBeGreaterThan(2)
    expect(await works.received(payee)).toBe(8_642_097_531n)
    expect(lines.some((line) => line.includes('the prover failed: RangeError'))).toBe(true)
    expect(lines.filter((line) => line.includes('8642097531'))).toEqual([])
  } finally {
    await host.close()
  }
})
