import { afterAll, beforeAll, expect, test } from 'vitest'
import { paymentStops, relayChannels } from '#drizzle/schema/relay.ts'
import { insertRows, itemRow, jobRow, transferRow } from '#lib/cli/seed/rows.ts'
import { findJobChannels } from '#lib/dashboard/paying-channels.ts'
import type { Database } from '#lib/db/connection.ts'
import { cloneDatabase } from '../support/database.ts'
import { accountOf } from '../support/directory.ts'

const NOW = new Date()
const TOKEN = 'C'
const LATER = new Date('2100-01-01')

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
})
afterAll(() => clone.drop())

test('says what each channel that may pay a job waits for, or lacks', async () => {
  const [job, another] = [jobRow({ batch: null }), jobRow({ userSub: 'grace', batch: null })]
  const names = ['sending', 'proving', 'busy', 'paused', 'unregistered', 'short', 'free', 'stopped', 'retired'] as const
  const addresses = Object.fromEntries(names.map((name, n) => [name, accountOf(70_000 + n)]))
  const short = [addresses.short ?? '']
  const lease = (channel: string | undefined) => ({ channel: channel ?? '', leasedUntil: LATER })
  await insertRows(db, {
    jobs: [job, another],
    items: [
      itemRow({ job: job.id, queuedAt: NOW, position: 0 }),
      itemRow({ job: job.id, queuedAt: NOW, position: 1, ...lease(addresses.proving) }),
      itemRow({ job: job.id, queuedAt: NOW, position: 2, unable: short }),
      itemRow({ job: job.id, queuedAt: NOW, position: 3 }),
      itemRow({ job: another.id, ...lease(addresses.busy) }),
    ],
    transfers: [transferRow({ account: addresses.sending ?? '', lineJob: job.id, linePosition: 0 })],
  })
  const state = {
    paused: { paused: true },
    unregistered: { problem: 'registration' },
    stopped: { seenAt: new Date(NOW.getTime() - 61_000) },
    retired: { retired: true },
  } as const
  await db.insert(relayChannels).values(
    names.map((name) => {
      return { token: TOKEN, address: addresses[name] ?? '', seenAt: NOW, ...state[name as keyof typeof state] }
    }),
  )
  const find = async (of = { ...job, status: 'running' as const, batch: null }) => {
    const channels = await findJobChannels(db, of, TOKEN, NOW)
    const waits = new Map(channels.map(({ address, waitsFor }) => [address, waitsFor]))
    return Object.fromEntries(names.map((name) => [name, waits.get(addresses[name] ?? '')]))
  }
  expect(await find()).toEqual({
    sending: 'the ledger',
    proving: 'a proof',
    busy: 'its turn: the channel pays another job or run',
    paused: 'an operator, who has paused the channel',
    unregistered: expect.stringMatching(/^the channel\. It is not registered with the token\. Stop the relays/),
    short:
      'a higher balance: it has too little for 1 of 2 transfers. Send USDC to its address by confidential transfer',
    free: 'its host',
    stopped: 'a relay with the key of this channel',
    retired: undefined,
  })
  await db.insert(paymentStops).values({ token: TOKEN, since: NOW })
  expect(await find()).toMatchObject({ sending: 'the ledger', free: expect.stringMatching(/^the end of the stop/) })
  expect(await findJobChannels(db, { ...job, status: 'completed', batch: null }, TOKEN, NOW)).toEqual([])
})
