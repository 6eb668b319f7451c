import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import { type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { insertRows, itemRow, jobRow } from '#lib/cli/seed/rows.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { confirmItem, storeSigned, take } from '#lib/relay/item.ts'
import { findItem, type HeldItem, type Item, type ItemId } from '#lib/relay/item-row.ts'
import { type ItemQueue, openQueue } from '#lib/relay/queue.ts'
import type { Channel, Relay } from '#lib/relay/relay.ts'
import { recordEnvelope } from '#lib/transfers/record.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'

export const NOW = new Date('2026-03-01T12:00:00Z')
export const LATER = new Date('2026-03-01T12:00:05Z')
const TOKEN = 'token'

/** Items and channels in a separate database, moved by the relay's functions, without ledger or worker. */
export interface ItemFixture {
  database: TestDatabase
  db: Database
  queue: ItemQueue
  /** a relay with the seeds of these channels, as far as items and channels move */
  relayWith(...addresses: string[]): Relay
  /** Makes free channels without a problem, and ends every item and removes every channel of an earlier test. */
  makeChannels(...addresses: string[]): Promise<void>
  makeJob(count: number, relayKey?: string): Promise<ItemId[]>
  makeItem(relayKey?: string): Promise<ItemId>
  take(id: ItemId, ...addresses: string[]): Promise<HeldItem>
  sign(item: HeldItem, name: string): Promise<HeldItem>
  /** Records the item's transfer as the sponsor does: the item is confirmed in the same SQL transaction. */
  bind(item: Item): Promise<void>
  /** Gives the item's transfer this status; `applied` is the inner hash on the ledger, by default the item's. */
  settle(item: Item, status: TransferStatus, applied?: string): Promise<void>
  statusOf(item: ItemId): Promise<Item['status'] | undefined>
  jobOf(id: string): Promise<typeof batchJobs.$inferSelect | undefined>
  channelOf(address: string): Promise<typeof relayChannels.$inferSelect | undefined>
  close(): Promise<void>
}

export async function openItemFixture(): Promise<ItemFixture> {
  const database = await cloneDatabase()
  const db = await database.store.database()
  const queue = openQueue({ database: database.store.database, relayKey: 'key' })
  await queue.open()
  const relayWith: ItemFixture['relayWith'] = (...addresses) => {
    const part: Partial<Relay> = {
      database: async () => db,
      token: TOKEN,
      queue,
      channels: addresses.map((address) => ({ address }) as Channel),
      now: () => LATER,
    }
    return part as Relay
  }
  const makeJob: ItemFixture['makeJob'] = async (count, relayKey = 'key') => {
    const job = jobRow({ userSub: randomUUID(), relayKey, createdAt: NOW })
    const items = Array.from({ length: count }, (_, position) =>
      itemRow({ job: job.id, position, quotaAccount: job.userSub, queuedAt: NOW }),
    )
    await insertRows(db, { jobs: [job], items })
    return items.map(({ job, position }) => ({ job, position }))
  }
  return {
    database,
    db,
    queue,
    relayWith,
    makeJob,
    makeChannels: async (...addresses) => {
      await db.delete(relayChannels)
      const ended = { status: 'failed', settledAt: NOW } as const
      await db.update(batchItems).set({ ...ended, sealedAmount: null, signedXdr: null, sealedOpening: null })
      // Adopted, and compared with the ledger at any time of these tests.
      const known = { token: TOKEN, seenAt: new Date(), sequenceNumber: 0n, comparedAt: new Date('2100-01-01') }
      await db.insert(relayChannels).values(addresses.map((address) => ({ ...known, address })))
    },
    makeItem: async (relayKey) => {
      const [item] = await makeJob(1, relayKey)
      if (!item) throw new Error('no item was made')
      return item
    },
    take: async (id, ...addresses) => {
      const taken = await take(relayWith(...addresses), id)
      if (typeof taken === 'string') throw new Error(taken)
      return taken
    },
    sign: async (item, name) => {
      const signed = {
        innerHash: name,
        signedXdr: `xdr of ${name}`,
        sealedOpening: `after ${name}`,
        sequenceNumber: 1n,
      }
      return await storeSigned(relayWith(), item, signed)
    },
    bind: (item) =>
      transact(db, async (tx) => {
        const { innerHash, quotaAccount } = item
        const account = `${item.channel} ${innerHash}`
        const transfer = { kind: 'transfer' as const, account, sequenceNumber: 1n, recipient: 'R' }
        await recordEnvelope(
          tx,
          { ...transfer, sponsor: 'S', quotaAccount, quotaDay: '2026-03-01', recordedLedger: 1, createdAt: NOW },
          { innerHash: innerHash ?? '', outerHash: `outer ${innerHash}`, signed: 'E', bid: 1n, maxTime: 1 },
        )
        await confirmItem(tx, item)
      }),
    settle: async ({ innerHash }, status, applied = innerHash ?? '') => {
      const id = (await findTransferOfHash(db, innerHash ?? ''))?.transfer.id ?? ''
      const stands = status === 'succeeded' || status === 'failed'
      await db
        .update(transfers)
        .set({
          status,
          hash: stands ? innerHash : null,
          applied: stands ? applied : null,
          settledAt: status === 'open' ? null : NOW,
        })
        .where(eq(transfers.id, id))
    },
    statusOf: async (item) => (await findItem(db, item))?.status,
    jobOf: async (id) => (await db.select().from(batchJobs).where(eq(batchJobs.id, id)))[0],
    channelOf: async (address) => (await db.select().from(relayChannels).where(eq(relayChannels.address, address)))[0],
    close: async () => {
      await queue.close()
      await database.drop()
    },
  }
}
