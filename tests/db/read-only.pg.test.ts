import { once } from 'node:events'
import { eq, sql } from 'drizzle-orm'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { batches } from '#drizzle/schema/directory.ts'
import { quotas } from '#drizzle/schema/transfers.ts'
import { batchRow, insertRows, organisationRow } from '#lib/cli/seed/rows.ts'
import { type Database, openStore, type Store, sqlState } from '#lib/db/connection.ts'
import { databaseFailure, innermostReason } from '#lib/db/errors.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { defineList } from '#lib/directory/lists.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { withResponse } from '#lib/turns/response.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { serveLocally } from '../support/local-server.ts'
import { startWebSocketProxy, type WebSocketProxy } from '../support/web-socket-proxy.ts'

let database: TestDatabase
let proxy: WebSocketProxy
beforeAll(async () => {
  database = await cloneDatabase()
  proxy = await startWebSocketProxy(database.url)
})
afterAll(async () => {
  await proxy?.close()
  await database?.drop()
})

const SETTINGS = sql`SELECT current_setting('transaction_read_only') AS "readOnly",
  current_setting('statement_timeout') AS timeout`

describe.each(['pg', 'vercel'] as const)('with the driver %s', (driver) => {
  let store: Store
  let db: Database
  beforeAll(async () => {
    const vercel = { url: database.url.replace('127.0.0.1', 'localhost'), webSocketProxy: proxy.address }
    store = openStore({ ...(driver === 'vercel' ? vercel : { url: database.url }), connections: 2 })
    db = await store.database()
  })
  afterAll(() => store?.close())

  test('reads in a read-only transaction whose statements the server ends after 5 seconds', async () => {
    const { rows } = (await readOnly(db).execute(SETTINGS)) as unknown as { rows: unknown[] }
    expect(rows).toMatchObject([{ readOnly: 'on', timeout: '5s' }])
    const { rows: others } = (await db.execute(SETTINGS)) as unknown as { rows: unknown[] }
    expect(others).toMatchObject([{ readOnly: 'off', timeout: '0' }])
  })

  test('does not begin a statement for a client that has left', async () => {
    const outcomes: string[] = []
    let failure: unknown
    const read = async () => {
      const outcome = readOnly(db).execute(sql`SELECT 1`)
      outcomes.push(
        await outcome
          .then(() => 'read')
          .catch((error) => {
            failure = databaseFailure(error)
            return innermostReason(error)
          }),
      )
    }
    const server = await serveLocally((_, response) =>
      withResponse(response, async () => {
        await read()
        response.write('the first part')
        await once(response, 'close')
        await read()
      }),
    )
    const { body } = await fetch(server.url)
    await body?.cancel()
    await expect.poll(() => outcomes).toEqual(['read', 'the client has left'])
    // Such a failure is not logged: it is a refusal without a cause.
    expect(failure).toBeInstanceOf(Refusal)
    expect((failure as Refusal).cause).toBeUndefined()
    await server.close()
  })

  test('refuses to write, and returns the connection after each failure', async () => {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const writing = readOnly(db).execute(sql`DELETE FROM quotas`)
      await expect(writing).rejects.toSatisfy((error) => sqlState(error) === '25006')
      // A server that only reads since a failover is replaced soon.
      await expect(writing.catch(databaseFailure)).resolves.toMatchObject({ code: 'unavailable' })
    }
    expect(await readOnly(db).query.quotas.findMany()).toEqual([])
    expect(await db.query.quotas.findMany()).toEqual([])
  })

  test('reads a page of a list and its total in such transactions', async () => {
    const organisation = organisationRow()
    await insertRows(db, {
      organisations: [organisation],
      batches: [1, 2].map(() => batchRow({ organisation: organisation.id })),
    })
    const { $client: pool } = db as unknown as { $client: Pool }
    const query = vi.spyOn(pool, 'query')
    const list = defineList(
      batches,
      { id: batches.id, createdAt: batches.createdAt, sequence: batches.sequence },
      (own) => eq(batches.organisation, own),
    )
    const page = { limit: 1, after: undefined, counts: true }
    for (const filter of [undefined, eq(batches.status, 'draft')]) {
      const part = await list.readPage(db, organisation.id, { filter, page, counter: 'batchCount' })
      expect([part.items.length, part.total]).toEqual([1, 2])
    }
    expect(query).not.toHaveBeenCalled()
    query.mockRestore()
  })

  test('reads in the transaction that it is given', async () => {
    await db.transaction(async (tx) => {
      await tx.insert(quotas).values({ account: 'G', day: '2026-11-20' })
      expect(await readOnly(tx as unknown as Database).query.quotas.findMany()).toHaveLength(1)
      await tx.delete(quotas)
    })
  })
})
