import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { GET } from '#app/api/cron/sweep/route.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { usedChallenges } from '#drizzle/schema/transfers.ts'
import { provideService } from '#lib/server/services.ts'
import { expectJobPaidOnce, quotaOf } from '../support/paid-once.ts'
import { chargeQuota } from '../transfers/quota-ledger.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

const SECRET = 'a secret of the scheduler'

let fixture: RelayService
beforeAll(async () => {
  fixture = await openRelayService({ channels: 2, variables: { CRON_SECRET: SECRET } })
})
afterAll(() => fixture?.close())
afterEach(() => {
  fixture.ledger.proxy.rule(null)
  provideService(Promise.resolve(fixture.running))
})

async function cron(authorization?: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const headers = { ...(authorization !== undefined && { authorization }) }
  const response = await GET(new Request('http://localhost:3000/api/cron/sweep', { headers }), undefined)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** The positions of a job's items, one for each message. */
async function messagesOf(jobId: string): Promise<number[]> {
  const answer = await fixture.db.execute(
    sql`SELECT (data->>'position')::int AS position FROM pgboss.job WHERE data->>'job' = ${jobId} ORDER BY 1`,
  )
  return (answer as unknown as { rows: { position: number }[] }).rows.map(({ position }) => position)
}

describe('GET /cron/sweep', () => {
  test('accepts only the scheduler’s token', async () => {
    expect(await cron()).toEqual({ status: 401, body: { error: 'missing bearer token', code: 'bearer-missing' } })
    expect(await cron(`Bearer ${SECRET}x`)).toEqual({
      status: 401,
      body: { error: 'invalid scheduler token', code: 'bearer-invalid' },
    })
    const client = await fixture.client()
    expect((await cron(`Bearer ${client.session}`)).status).toBe(401)
    const settings = { ...fixture.running.settings, cronSecret: undefined }
    provideService(Promise.resolve({ ...fixture.running, settings }))
    expect((await cron(`Bearer ${SECRET}`)).status).toBe(501)
  })

  test('purges used challenges that have expired', async () => {
    const at = (minutes: number) => new Date(Date.now() + minutes * 60_000)
    await fixture.db.insert(usedChallenges).values([
      { hash: 'old', expiresAt: at(-1) },
      { hash: 'new', expiresAt: at(1) },
    ])
    expect(await cron(`Bearer ${SECRET}`)).toMatchObject({ status: 200, body: { challenges: 1 } })
    expect((await fixture.db.query.usedChallenges.findMany()).map(({ hash }) => hash)).toEqual(['new'])
  })

  test('activates contractors who have registered since', async () => {
    await fixture.engaged()
    await fixture.db.execute(sql`UPDATE contractors SET status = 'invited', pvk = NULL`)
    expect((await cron(`Bearer ${SECRET}`)).body).toMatchObject({ contractors: 1 })
    const [contractor] = await fixture.db.query.contractors.findMany()
    expect(contractor?.status).toBe('ready')
  })

  test('reports a failed chore as null, runs the others, and runs it again on the next request', async () => {
    await fixture.engaged()
    await fixture.db.execute(sql`UPDATE contractors SET status = 'invited', pvk = NULL`)
    const waiting = await fixture.db.$count(contractors)
    await fixture.db.insert(usedChallenges).values({ hash: 'older', expiresAt: new Date(Date.now() - 60_000) })
    const client = await fixture.client()
    const jobId = await fixture.begin(client, 3)
    await fixture.db.execute(sql`DELETE FROM pgboss.job`)
    fixture.ledger.proxy.rule(() => ({ status: 503 }))
    const { status, body } = await cron(`Bearer ${SECRET}`)
    const failed = Object.keys(body).filter((part) => body[part] === null)
    expect([status, failed]).toEqual([200, ['contractors', 'archive']])
    // The items chore runs after the contractors chore, and the challenges chore after both.
    expect(body).toMatchObject({ items: 1, challenges: 1 })
    expect(await messagesOf(jobId)).toEqual([0])
    expect(await fixture.db.query.usedChallenges.findMany({ where: (row, { eq }) => eq(row.hash, 'older') })).toEqual(
      [],
    )
    fixture.ledger.proxy.rule(null)
    expect((await cron(`Bearer ${SECRET}`)).body).toMatchObject({ contractors: waiting })
    await fixture.db.execute(
      sql`UPDATE batch_items SET queued_at = queued_at - interval '25 hours' WHERE job = ${jobId}`,
    )
    await fixture.db.update(relayChannels).set({ comparedAt: sql`clock_timestamp()` })
    await cron(`Bearer ${SECRET}`)
    expect((await fixture.read(client, jobId)).body.status).toBe('failed')
  })
})

test('sends one new message for an item whose message was lost', async () => {
  const client = await fixture.client()
  const jobId = await fixture.begin(client, 1, 2)
  expect(await messagesOf(jobId)).toEqual([0, 1])
  await fixture.db.execute(sql`DELETE FROM pgboss.job`)
  await cron(`Bearer ${SECRET}`)
  await cron(`Bearer ${SECRET}`)
  expect(await messagesOf(jobId)).toEqual([0, 1])
})

test('pays an item from another channel when no relay has its channel’s seed', async () => {
  const { client, payee } = await fixture.engaged()
  const jobId = await fixture.begin(client, 5)
  await fixture.db.execute(
    sql`UPDATE batch_items SET status = 'taken', channel = 'GONE', attempt = 1 WHERE job = ${jobId}`,
  )
  const { token } = fixture.ledger.network
  const seenAt = new Date(Date.now() - 11 * 60_000)
  await fixture.db.insert(relayChannels).values({ token, address: 'GONE', seenAt, itemJob: jobId, itemPosition: 0 })
  await using _relay = await fixture.relay()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 5n])
  const gone = await fixture.db.query.relayChannels.findFirst({
    where: (channel, { eq }) => eq(channel.address, 'GONE'),
  })
  expect(gone).toMatchObject({ itemJob: null })
  const [item] = await fixture.db.query.batchItems.findMany({ where: (row, { eq }) => eq(row.job, jobId) })
  expect(fixture.channels.map((channel) => channel.publicKey())).toContain(item?.channel)
})

test('fails an item after a day, even if its transfer was signed and never recorded', async () => {
  const client = await fixture.client()
  const jobId = await fixture.begin(client, 5, 6, 7)
  await fixture.db.execute(
    sql`UPDATE batch_items SET status = 'taken', channel = 'ONE' WHERE job = ${jobId} AND position = 1`,
  )
  await fixture.db.execute(
    sql`UPDATE batch_items SET status = 'signed', channel = 'TWO', inner_hash = 'h', signed_xdr = 'x', sealed_opening = 'o'
        WHERE job = ${jobId} AND position = 2`,
  )
  await cron(`Bearer ${SECRET}`)
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })
  await fixture.db.execute(sql`UPDATE batch_items SET queued_at = queued_at - interval '25 hours' WHERE job = ${jobId}`)
  await fixture.db.update(relayChannels).set({ comparedAt: null })
  await cron(`Bearer ${SECRET}`)
  // A channel that was not compared with the ledger since may have paid them.
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })
  await fixture.db.update(relayChannels).set({ comparedAt: sql`clock_timestamp()` })
  await cron(`Bearer ${SECRET}`)
  expect((await fixture.read(client, jobId)).body).toMatchObject({
    status: 'failed',
    error: 'transfer 0: no relay could pay it within a day',
    results: [
      { i: 0, hash: '', status: 'FAILED' },
      { i: 1, hash: '', status: 'FAILED' },
      { i: 2, hash: '', status: 'FAILED' },
    ],
  })
})

test('counts a job’s items against its user’s quota, and fails an item beyond it', async () => {
  const { client } = await fixture.engaged()
  await chargeQuota(fixture.db, client.address, 499)
  await using _relay = await fixture.relay()
  const jobId = await fixture.begin(client, 5, 6)
  const job = await fixture.ended(client, jobId)
  expect(job.status).toBe('failed')
  expect(job.error).toMatch(
    /^transfer [01]: sponsor refused: the daily number of transfers of this account is used up$/,
  )
  expect(job.results.map(({ status }) => status).sort()).toEqual(['FAILED', 'SUCCESS'])
  expect(await quotaOf(fixture, client.address)).toMatchObject({ count: 500, held: 0n })
  for (const channel of fixture.channels) expect(await quotaOf(fixture, channel.publicKey())).toBeUndefined()
})
