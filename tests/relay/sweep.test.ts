import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { GET } from '#app/api/cron/sweep/route.ts'
import { usedChallenges } from '#drizzle/schema/transfers.ts'
import { provideService } from '#lib/server/services.ts'
import { openWorks, type Works } from './works.ts'

const SECRET = 'a secret of the scheduler'

let works: Works
beforeAll(async () => {
  works = await openWorks({ channels: 2, variables: { CRON_SECRET: SECRET } })
}, 120_000)
afterAll(() => works?.close())
afterEach(() => {
  works.proxy.rule(null)
  provideService(Promise.resolve(works.service))
})

async function cron(authorization?: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const headers = { ...(authorization !== undefined && { authorization }) }
  const response = await GET(new Request('http://localhost:3000/api/cron/sweep', { headers }), undefined)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

describe('GET /cron/sweep', () => {
  test('is for the scheduler alone', async () => {
    expect(await cron()).toEqual({ status: 401, body: { error: 'missing bearer token', code: 'bearer-missing' } })
    expect(await cron(`Bearer ${SECRET}x`)).toEqual({
      status: 401,
      body: { error: 'invalid scheduler token', code: 'bearer-invalid' },
    })
    const client = await works.client()
    expect((await cron(`Bearer ${client.session}`)).status).toBe(401)
    const settings = { ...works.service.settings, cronSecret: undefined }
    provideService(Promise.resolve({ ...works.service, settings }))
    expect((await cron(`Bearer ${SECRET}`)).status).toBe(501)
  })

  test('purges used challenges, and only old ones', async () => {
    const at = (minutes: number) => new Date(Date.now() + minutes * 60_000)
    await works.db.insert(usedChallenges).values([
      { hash: 'old', expiresAt: at(-1) },
      { hash: 'new', expiresAt: at(1) },
    ])
    expect(await cron(`Bearer ${SECRET}`)).toMatchObject({ status: 200, body: { challenges: 1 } })
    expect((await works.db.query.usedChallenges.findMany()).map(({ hash }) => hash)).toEqual(['new'])
  })

  test('makes contractors ready who have registered since', async () => {
    const client = await works.client()
    const payee = await works.payee()
    await works.hire(client, [payee.signer.publicKey()])
    await works.db.execute(sql`UPDATE contractors SET status = 'invited', pvk = NULL`)
    expect((await cron(`Bearer ${SECRET}`)).body).toMatchObject({ contractors: 1 })
    const [contractor] = await works.db.query.contractors.findMany()
    expect(contractor?.status).toBe('ready')
  })

  test('tells which part failed, and does the others', async () => {
    works.proxy.rule(() => ({ status: 503 }))
    await works.db.execute(sql`UPDATE contractors SET status = 'invited', pvk = NULL`)
    expect((await cron(`Bearer ${SECRET}`)).body).toMatchObject({ contractors: null, challenges: 0 })
  })
})

test('a job whose message was lost is queued again, and once only', async () => {
  const client = await works.client()
  const { jobId } = (await works.post(client, { amounts: [1] })).body as { jobId: string }
  const messages = async () => {
    const answer = await works.db.execute(sql`SELECT 1 FROM pgboss.job WHERE data->>'job' = ${jobId}`)
    return (answer as unknown as { rows: unknown[] }).rows.length
  }
  await works.db.execute(sql`DELETE FROM pgboss.job`)
  await cron(`Bearer ${SECRET}`)
  expect(await messages()).toBe(0)
  await works.db.execute(sql`UPDATE batch_jobs SET created_at = created_at - interval '2 minutes'`)
  expect((await cron(`Bearer ${SECRET}`)).body).toMatchObject({ jobs: 1 })
  await cron(`Bearer ${SECRET}`)
  expect(await messages()).toBe(1)
})

test('an item that a channel has begun whose key nobody has any more is freed for the others', async () => {
  const client = await works.client()
  const payee = await works.payee()
  await works.hire(client, [payee.signer.publicKey()])
  const { jobId } = (await works.post(client, { amounts: [5] })).body as { jobId: string }
  await works.db.execute(
    sql`UPDATE batch_items SET status = 'taken', channel = 'GONE', attempt = 1 WHERE job = ${jobId}`,
  )
  await works.db.execute(
    sql`INSERT INTO relay_channels (token, address, seen_at) VALUES (${works.network.token}, 'GONE', now() - interval '11 minutes')`,
  )
  const relay = await works.relay()
  try {
    expect(await works.ended(client, jobId)).toMatchObject({ status: 'completed' })
    expect(await works.received(payee)).toBe(5n)
  } finally {
    await relay.close()
  }
})

test('an item that no channel took for an hour, or that one could make no transfer for, is given up', async () => {
  const client = await works.client()
  const { jobId } = (await works.post(client, { amounts: [5, 6] })).body as { jobId: string }
  await works.db.execute(sql`UPDATE batch_items SET queued_at = queued_at - interval '61 minutes' WHERE job = ${jobId}`)
  await works.db.execute(
    sql`UPDATE batch_items SET status = 'taken', channel = ${works.channels[0]?.publicKey()}, attempt = 1
        WHERE job = ${jobId} AND position = 1`,
  )
  await cron(`Bearer ${SECRET}`)
  expect((await works.read(client, jobId)).body).toMatchObject({
    status: 'failed',
    error: 'transfer 0: no channel could pay it in time',
    results: [
      { i: 0, hash: '', status: 'FAILED' },
      { i: 1, hash: '', status: 'FAILED' },
    ],
  })
})

test('a user’s quota counts the items of its jobs, and an item beyond it fails', async () => {
  const client = await works.client()
  const payee = await works.payee()
  await works.hire(client, [payee.signer.publicKey()])
  const day = new Date().toISOString().slice(0, 10)
  await works.db.execute(sql`INSERT INTO quotas (account, day, count) VALUES (${client.address}, ${day}, 499)`)
  const relay = await works.relay()
  try {
    const { jobId } = (await works.post(client, { amounts: [5, 6] })).body as { jobId: string }
    const job = await works.ended(client, jobId)
    expect(job.status).toBe('failed')
    expect(job.error).toMatch(
      /^transfer [01]: sponsor refused: the daily number of transfers of this account is used up$/,
    )
    expect(job.results.map(({ status }) => status).sort()).toEqual(['FAILED', 'SUCCESS'])
    const quotas = await works.db.query.quotas.findMany()
    expect(quotas.find(({ account }) => account === client.address)).toMatchObject({ count: 500, held: 0n })
    const channels = works.channels.map((channel) => channel.publicKey())
    expect(quotas.filter(({ account }) => channels.includes(account))).toEqual([])
  } finally {
    await relay.close()
  }
})
