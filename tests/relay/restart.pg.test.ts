import { and, eq, inArray } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { transfers } from '#drizzle/schema/transfers.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

let postgres: PostgresServer
let fixture: RelayService
beforeAll(async () => {
  postgres = await startPostgres()
  fixture = await openRelayService({ channels: 3, variables: { DATABASE_URL: postgres.url } })
})
afterAll(async () => {
  await fixture?.close()
  await postgres?.remove()
})

test('pays each line once when the database server restarts under load', async () => {
  await using _relay = await fixture.relay()
  const clients = await Promise.all(Array.from({ length: 3 }, () => fixture.client()))
  const jobs = await Promise.all(clients.map((client) => fixture.begin(client, 1, 2, 4, 8)))
  for (const away of [0, 1_500]) {
    await new Promise((resolve) => setTimeout(resolve, 700))
    await postgres.restart(away)
  }
  const service = { ...fixture, db: await fixture.running.database() }
  for (const [index, client] of clients.entries()) {
    await expect.poll(async () => (await fixture.read(client, jobs[index] ?? '')).status).toBe(200)
    const { results } = await expectJobPaidOnce(service, client, jobs[index] ?? '')
    expect(results).toHaveLength(4)
  }
  const channels = fixture.channels.map((channel) => channel.publicKey())
  const paid = await service.db
    .select()
    .from(transfers)
    .where(and(eq(transfers.status, 'succeeded'), eq(transfers.kind, 'transfer'), inArray(transfers.account, channels)))
  expect(new Set(paid.map(({ hash }) => hash)).size).toBe(12)
  expect(paid).toHaveLength(12)
})
