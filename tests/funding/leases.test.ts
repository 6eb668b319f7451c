import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faucetGrants } from '#drizzle/schema/transfers.ts'
import { type Database, openStore, type Store } from '#lib/db/connection.ts'
import { type Lease, releaseLease, renewLease, takeLease, underLease } from '#lib/db/leases.ts'
import { cloneDatabase } from '../support/database.ts'

let postgres: Awaited<ReturnType<typeof cloneDatabase>>
let other: Store
let db: Database
/** the same database through connections of their own */
let elsewhere: Database
beforeAll(async () => {
  postgres = await cloneDatabase()
  other = openStore({ url: postgres.url })
  db = await postgres.store.database()
  elsewhere = await other.database()
})
afterAll(async () => {
  await other.close()
  await postgres.drop()
})

let accounts = 0
const newAccount = () => {
  accounts += 1
  return `account ${accounts}`
}

async function take(account: string, on = db, seconds = 60): Promise<Lease> {
  const lease = await takeLease(on, account, { holder: 'test', seconds })
  if (!lease) throw new Error('the lease is taken')
  return lease
}

/** The lease runs out now, by the database's clock. */
const expire = ({ account }: Lease) =>
  db.execute(sql`UPDATE leases SET until = clock_timestamp() - interval '1 microsecond' WHERE account = ${account}`)

test('of twenty that take it at once, one has it, and the others none of it', async () => {
  const account = newAccount()
  const taken = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      takeLease(i % 2 === 0 ? db : elsewhere, account, { holder: `holder ${i}`, seconds: 60 }),
    ),
  )
  expect(taken.filter(Boolean)).toEqual([{ account, token: 1 }])
})

test('whoever has it is not given it twice; another account is another lease', async () => {
  const account = newAccount()
  await take(account)
  expect(await takeLease(db, account, { holder: 'test', seconds: 60 })).toBeUndefined()
  expect(await take(newAccount())).toMatchObject({ token: 1 })
})

test('expired, it goes to the next with a higher number, and the holder of old can do nothing with it', async () => {
  const first = await take(newAccount())
  await expire(first)
  const second = await take(first.account, elsewhere)
  expect(second.token).toBe(first.token + 1)
  expect(await renewLease(db, first, 60)).toBe(false)
  expect(await underLease(db, first, async () => 'written')).toBeUndefined()
  await releaseLease(db, first)
  expect(await takeLease(db, first.account, { holder: 'third', seconds: 60 })).toBeUndefined()
  expect(await renewLease(elsewhere, second, 60)).toBe(true)
  expect(await underLease(elsewhere, second, async () => 'written')).toBe('written')
})

test('expired, it is lost even while nobody else has taken it', async () => {
  const lease = await take(newAccount())
  await expire(lease)
  expect(await renewLease(db, lease, 60)).toBe(false)
  expect(await underLease(db, lease, async () => 'written')).toBeUndefined()
})

test('renewed, it lasts from the renewal on, by the database’s clock', async () => {
  const lease = await take(newAccount(), db, 1)
  expect(await renewLease(db, lease, 1000)).toBe(true)
  const { rows } = (await db.execute(
    sql`SELECT extract(epoch FROM until - clock_timestamp())::int AS left FROM leases WHERE account = ${lease.account}`,
  )) as unknown as { rows: { left: number }[] }
  expect(rows[0]?.left).toBeGreaterThan(900)
  expect(rows[0]?.left).toBeLessThanOrEqual(1000)
})

test('released, it is free at once', async () => {
  const lease = await take(newAccount())
  await releaseLease(db, lease)
  expect(await renewLease(db, lease, 60)).toBe(false)
  expect((await take(lease.account, elsewhere)).token).toBe(lease.token + 1)
})

test('what is being written under a lease is there before anybody else has it, though it expires meanwhile', async () => {
  const lease = await take(newAccount())
  const inside = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const writing = underLease(db, lease, async (tx) => {
    // The lease ends while the transaction is open.
    await tx.execute(sql`UPDATE leases SET until = clock_timestamp() WHERE account = ${lease.account}`)
    await tx.insert(faucetGrants).values({ account: lease.account, amount: 1n })
    inside.resolve()
    await end.promise
  })
  await inside.promise
  const taking = takeLease(elsewhere, lease.account, { holder: 'next', seconds: 60 })
  await waitForBlocked()
  end.resolve()
  await writing
  expect(await taking).toEqual({ account: lease.account, token: lease.token + 1 })
  expect(await elsewhere.query.faucetGrants.findMany()).toHaveLength(1)
})

async function waitForBlocked(): Promise<void> {
  for (;;) {
    const { rows } = (await db.execute(
      sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )) as unknown as { rows: unknown[] }
    if (rows.length > 0) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
