import { afterAll, beforeAll, expect, test } from 'vitest'
import { readiness } from '#lib/readiness.ts'
import { startChild } from './relay-child.ts'
import { openWorks, type Works } from './works.ts'

let works: Works
beforeAll(async () => {
  works = await openWorks({ channels: 6 })
}, 120_000)
afterAll(() => works?.close())

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
      const job = await works.ended(client, String(started[index]?.body.jobId), 50)
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
