import { eq, isNotNull } from 'drizzle-orm'
import { afterEach, expect, test, vi } from 'vitest'
import { relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { captureLog } from '../support/console.ts'
import { expectJobPaidOnce, quotaOf } from '../support/paid-once.ts'
import { freePort } from '../support/port.ts'
import { startChild } from './relay-child.ts'
import { serveJobs } from './relay-service.ts'

const fixture = await serveJobs({ channels: 6 })
afterEach(() => vi.restoreAllMocks())

test.each([
  ['with the same channels', 0],
  ['with different channels, which share the work', 3],
])('two relays on one database pay every line of the jobs of many users once, %s', async (_, apart) => {
  const seeds = fixture.channels.map((channel) => channel.secret())
  const ofHost = [seeds.slice(0, apart || undefined), seeds.slice(apart)]
  const relays = await Promise.all(
    ofHost.map((own) => startChild({ ...fixture.variables, CHANNEL_SEEDS: own.join(',') })),
  )
  try {
    const people = await Promise.all(Array.from({ length: 10 }, () => fixture.engaged()))
    const jobs = await Promise.all(people.map(({ client }) => fixture.begin(client, 1, 2, 4, 8, 16)))
    const hashes = new Set<string>()
    for (const [index, { client, payee }] of people.entries()) {
      const job = await expectJobPaidOnce(fixture, client, jobs[index] ?? '', [payee, 31n])
      expect(job.results).toHaveLength(5)
      for (const { hash } of job.results) hashes.add(hash)
    }
    // One transaction per line.
    expect(hashes.size).toBe(50)
    const recorded = relays.map(({ log }) => log.filter(({ event }) => event === 'payment recorded').length)
    expect(recorded.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(50)
    if (apart > 0) expect(Math.min(...recorded)).toBeGreaterThanOrEqual(1)
  } finally {
    await Promise.all(relays.map((relay) => relay.kill()))
  }
})

test('takes over the channels of a killed relay', async () => {
  const relays = await Promise.all([startChild(fixture.variables), startChild(fixture.variables)])
  try {
    const { client, payee } = await fixture.engaged()
    const amounts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    const jobId = await fixture.begin(client, ...amounts)
    // Either may record the first payment: one of them can lease a line for every channel.
    const findFirst = () => relays.find(({ log }) => log.some(({ event }) => event === 'payment recorded'))
    await expect.poll(findFirst, { timeout: 120_000, interval: 10 }).toBeDefined()
    await findFirst()?.kill()
    await expectJobPaidOnce(fixture, client, jobId, [payee, 1023n])
  } finally {
    await Promise.all(relays.map((relay) => relay.kill()))
  }
})

/** A relay in this process with its own prover. */
const startWith = (own: typeof prover) => fixture.relay({ prover: own })

test('completes a job after its prover failed, and never logs the error’s message', async () => {
  const lines = captureLog()
  let failures = 0
  const prove: typeof prover.prove = async (statement) => {
    failures += 1
    if (failures <= 2) throw new RangeError('vTransfer 8642097531 does not fit')
    return await prover.prove(statement)
  }
  await using _host = await startWith({ prove })
  const { client, payee, job: jobId } = await fixture.start(8_642_097_531)
  await expectJobPaidOnce(fixture, client, jobId, [payee, 8_642_097_531n])
  expect(failures).toBeGreaterThan(2)
  expect(lines.some((line) => line.includes('the prover failed: RangeError'))).toBe(true)
  expect(lines.filter((line) => line.includes('8642097531'))).toEqual([])
})

const otherKey = new Uint8Array(1_760).fill(1)
const withKeys = (keys: object) =>
  ({ ...prover, verificationKeys: { ...prover.verificationKeys, ...keys } }) as typeof prover

test.each([
  [
    'the circuit',
    { transfer: otherKey },
    "PROVER_CIRCUITS: the network's verifier has another key, or none, for the circuit transfer",
  ],
  [
    'stand-in proofs',
    { register: otherKey, withdraw: otherKey, transfer: otherKey },
    'DEVNET_PROOFS: the ledger accepts stand-in proofs only: set it to stand-in here, too',
  ],
])("refuses to start if the network's verifier has another key, and names %s", async (_, keys, reason) => {
  const destroy = vi.fn(async () => undefined)
  await expect(fixture.relay({ prover: { ...withKeys(keys), destroy } })).rejects.toThrow(reason)
  // The prover's worker would keep the process alive.
  expect(destroy).toHaveBeenCalledTimes(1)
})

test('inside a service, logs that the verifier has another key, and pays nothing', async () => {
  const lines = captureLog()
  await using host = await fixture.relay({ prover: withKeys({ withdraw: otherKey }), mayBeMute: true })
  const reason = "PROVER_CIRCUITS: the network's verifier has another key, or none, for the circuit withdraw"
  await expect.poll(() => lines.some((line) => line.includes(reason))).toBe(true)
  const { client, payee, job: jobId } = await fixture.start(5)
  const tells = (line: string) => line.includes('line waits') && line.includes(jobId) && line.includes(reason)
  await expect.poll(() => lines.some(tells)).toBe(true)
  await host.close()
  expect(await fixture.db.$count(transfers, eq(transfers.lineJob, jobId))).toBe(0)
  expect(await fixture.received(payee)).toBe(0n)
  await using _fit = await startWith(prover)
  await expectJobPaidOnce(fixture, client, jobId, [payee, 5n])
})

test('pays a job once even though its prover hangs, dies and runs out of memory, and logs each reason', async () => {
  const lines = captureLog()
  const faults = ['took longer than 120 s', 'ended in the middle', 'failed: memory']
  const left = faults.map((fault) => new ProverError('failed', `the prover ${fault}`))
  const prove: typeof prover.prove = async (statement) => {
    const fault = left.shift()
    if (fault) throw fault
    return await prover.prove(statement)
  }
  await using _host = await startWith({ ...prover, prove })
  const { client, payee, job: jobId } = await fixture.start(77)
  await expectJobPaidOnce(fixture, client, jobId, [payee, 77n])
  for (const fault of faults) expect(lines.some((line) => line.includes(fault))).toBe(true)
  expect(await fixture.db.$count(relayLines, isNotNull(relayLines.leasedUntil))).toBe(0)
})

test.each([
  ['slow', -300, 'behind'],
  ['fast', 300, 'ahead of'],
] as const)(
  'a relay whose clock is 300 s %s pays each line with its first transfer, and reports the difference',
  async (_, shift, direction) => {
    const port = await freePort()
    const variables = { ...fixture.variables, RELAY_PORT: `${port}`, CLOCK_SHIFT_MS: `${shift * 1000}` }
    const relay = await startChild(variables)
    try {
      const { client, payee, job } = await fixture.start(1, 2, 4)
      await expectJobPaidOnce(fixture, client, job, [payee, 7n])
      expect(await quotaOf(fixture, client.address)).toMatchObject({ count: 3 })
      const health = (await (await fetch(`http://localhost:${port}/health`)).json()) as {
        ok: boolean
        clockOffsetSeconds: number
        problems: string[]
      }
      expect(health.ok).toBe(false)
      expect(Math.sign(health.clockOffsetSeconds)).toBe(Math.sign(shift))
      const problem = `this host's clock is ${Math.abs(health.clockOffsetSeconds)} s ${direction} the ledger's: synchronise it`
      expect(health.problems).toEqual([problem])
      expect(relay.log).toContainEqual(
        expect.objectContaining({ event: 'clock', level: 'error', problem: expect.stringContaining(direction) }),
      )
    } finally {
      await relay.kill()
    }
  },
)
