import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import { resumeItems } from '#lib/relay/chores.ts'
import { findItem, type Item } from '#lib/relay/item-row.ts'
import { type ItemFixture, NOW, openItemFixture } from './item-fixture.ts'

const DAY = 86_400_000

let fixture: ItemFixture
beforeAll(async () => {
  fixture = await openItemFixture()
})
afterAll(() => fixture?.close())

/** A signed item of a key that no relay has, on a channel that other relays have. */
async function signLost(name: string): Promise<Item> {
  const { makeChannels, makeItem, take, sign } = fixture
  await makeChannels('A')
  return await sign(await take(await makeItem('a key that is lost'), 'A'), name)
}

/** Runs the chores with another key, this many milliseconds after the item was queued. */
const doChores = (after: number) =>
  resumeItems({ ...fixture.relayWith('A'), now: () => new Date(NOW.getTime() + after) })

const stateOf = async (item: Item) => {
  const { status, hash, error } = (await findItem(fixture.db, item)) ?? {}
  const { itemJob } = (await fixture.channelOf('A')) ?? {}
  return { status, hash, error, free: itemJob === null, job: (await fixture.jobOf(item.job))?.status }
}

describe('a signed item whose relay key is lost', () => {
  test('is paid when its transfer has succeeded', async () => {
    const item = await signLost('succeeded')
    await fixture.bind(item)
    await doChores(0)
    expect(await stateOf(item)).toMatchObject({ status: 'signed', free: false })
    await fixture.settle(item, 'succeeded')
    await doChores(0)
    expect(await stateOf(item)).toEqual({
      status: 'paid',
      hash: 'succeeded',
      error: null,
      free: true,
      job: 'completed',
    })
  })

  test('ends as unknown when its transfer is unknown', async () => {
    const item = await signLost('unknown')
    await fixture.bind(item)
    await fixture.settle(item, 'unknown')
    await doChores(0)
    expect(await stateOf(item)).toMatchObject({ status: 'unknown', free: true, job: 'failed' })
  })

  const end = (status: TransferStatus, applied?: string) => async (item: Item) => {
    await fixture.bind(item)
    await fixture.settle(item, status, applied)
  }
  test.each([
    ['has failed', end('failed')],
    ['has expired', end('expired')],
    ['was replaced by a rival', end('succeeded', 'a rival')],
    ['was never recorded', async () => undefined],
  ])('fails a day after it was queued when its transfer %s', async (name, prepare) => {
    const item = await signLost(name)
    await prepare(item)
    await doChores(DAY - 1)
    expect(await stateOf(item)).toMatchObject({ status: 'signed', free: false, job: 'running' })
    await doChores(DAY + 1)
    expect(await stateOf(item)).toMatchObject({
      status: 'failed',
      error: 'no relay could pay it within a day',
      free: true,
      job: 'failed',
    })
  })

  test('stays signed while its transfer is open, even after a day', async () => {
    const item = await signLost('open')
    await fixture.bind(item)
    await doChores(2 * DAY)
    expect(await stateOf(item)).toMatchObject({ status: 'signed', free: false, job: 'running' })
  })

  test('frees its channel for an item that waits for it', async () => {
    const item = await signLost('in the way')
    await fixture.bind(item)
    await fixture.settle(item, 'succeeded')
    const waiting = await fixture.makeItem()
    await doChores(0)
    expect((await fixture.take(waiting, 'A')).channel).toBe('A')
    const messages = await fixture.db.execute(sql`SELECT 1 FROM pgboss.job WHERE data->>'job' = ${item.job}`)
    expect((messages as unknown as { rows: unknown[] }).rows).toEqual([])
  })
})
