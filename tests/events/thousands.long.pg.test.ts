import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type AuditEntry, recordAudit } from '#lib/db/audit-log.ts'
import { deliverDue } from '#lib/events/delivery.ts'
import type { Event } from '#lib/events/event.ts'
import { captureLog } from '../support/console.ts'
import { openEndpoint, openStage, type Stage } from './stage.ts'

const WRITERS = 12
const PAYOUTS = 2_500
const ACTIONS = ['payout.created', 'payout.readied', 'payout.claimed', 'payout.paid'] as const
const TYPES = ['payout.created', 'payout.ready', 'payout.pending', 'payout.paid']

let stage: Stage
beforeAll(async () => {
  captureLog()
  stage = await openStage()
})
afterAll(async () => {
  vi.restoreAllMocks()
  await stage?.close()
})

/** Writes what happens to each payout, each step in its own SQL transaction, by several writers that commit in any order. */
async function write(organisation: string, payouts: readonly string[]): Promise<void> {
  const left = [...payouts]
  const entryOf = (action: (typeof ACTIONS)[number], subject: string): AuditEntry => ({
    ...{ organisation, action, subject },
    actor: { kind: 'service', sub: 'test' },
  })
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      for (let payout = left.pop(); payout !== undefined; payout = left.pop()) {
        for (const action of ACTIONS) {
          const subject = payout
          await stage.db.transaction(async (tx) => {
            await recordAudit(tx, new Date(), entryOf(action, subject))
            // The entry has its number, and others commit before it.
            if (subject < '2') await setTimeout(5)
          })
        }
      }
    }),
  )
}

/** Follows the events until there are as many. */
async function follow(session: string, count: number, wait: number): Promise<Event[]> {
  const all: Event[] = []
  while (all.length < count) {
    const after = all.at(-1)?.id
    const query = `limit=500&wait=${wait}${after === undefined ? '' : `&after=${after}`}`
    const { status, body } = await stage.ask<{ events: Event[] }>('GET', `/events?${query}`, { session })
    if (status !== 200) throw new Error(JSON.stringify(body))
    all.push(...body.events)
    if (body.events.length === 0) await setTimeout(50)
  }
  return all
}

test('lists 10,000 events of concurrent writers once each, and those of a payout in their order', async () => {
  const { session, organisation } = await stage.employer()
  const payouts = Array.from({ length: PAYOUTS }, () => randomUUID())
  const count = PAYOUTS * ACTIONS.length
  const [, polled, listed] = await Promise.all([
    write(organisation, payouts),
    follow(session, count, 25),
    follow(session, count, 0),
  ])
  // Nothing appears later before what was read already.
  expect(listed).toEqual(polled)
  expect(await follow(session, count, 0)).toEqual(polled)
  expect(new Set(polled.map(({ id }) => id)).size).toBe(count)
  const ofPayout = Map.groupBy(polled, ({ data }) => data.payoutId)
  expect(ofPayout.size).toBe(PAYOUTS)
  for (const happened of ofPayout.values()) expect(happened.map(({ type }) => type)).toEqual(TYPES)
})

test('delivers 400 events to a receiver that fails three times in ten', async () => {
  const { session, organisation } = await stage.employer()
  const endpoint = await openEndpoint()
  const delivered = new Set<string>()
  let turn = 0
  endpoint.answer = (response, { headers }) => {
    turn += 1
    const fails = (turn * 7) % 10 < 3
    if (!fails) delivered.add(String(headers['webhook-id']))
    response.writeHead(fails ? 500 : 200).end()
  }
  const { id } = await stage.hook(session, endpoint.url)
  const payouts = Array.from({ length: 100 }, () => randomUUID())
  await write(organisation, payouts)
  const told = await follow(session, 400, 0)
  while (delivered.size < told.length) {
    await deliverDue(stage.webhooks)
    await stage.passPauses()
  }
  expect(delivered).toEqual(new Set(told.map((event) => event.id)))
  expect((await stage.deliveriesOf(id)).every(({ status }) => status === 'delivered')).toBe(true)
  await endpoint.close()
})
