import { eq, type SQL, sql } from 'drizzle-orm'
import { afterEach, describe, expect, test } from 'vitest'
import { GET } from '#app/api/cron/sweep/route.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { transfers as transferRows, usedChallenges } from '#drizzle/schema/transfers.ts'
import { insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { provideService } from '#lib/server/services.ts'
import { isLine } from '#lib/transfers/line.ts'
import { expectJobPaidOnce, quotaOf } from '../support/paid-once.ts'
import { chargeQuota } from '../transfers/quota-ledger.ts'
import { serveJobs } from './relay-service.ts'

const SECRET = 'a secret of the scheduler'

const fixture = await serveJobs({ channels: 2, variables: { CRON_SECRET: SECRET } })
afterEach(() => provideService(Promise.resolve(fixture.running)))

async function cron(authorization?: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const headers = { ...(authorization !== undefined && { authorization }) }
  const response = await GET(new Request('http://localhost:3000/api/cron/sweep', { headers }), undefined)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const sweep = () => cron(`Bearer ${SECRET}`)

/** Lets the lines of a job be queued 25 hours ago. */
const makeOverdue = (job: string) =>
  fixture.db
    .update(relayLines)
    .set({ queuedAt: sql`${relayLines.queuedAt} - interval '25 hours'` })
    .where(eq(relayLines.job, job))

/** The lines of a job cannot fail before every channel was compared with the ledger, a day after they were queued. */
const setCompared = (comparedAt: SQL | null) => fixture.db.update(relayChannels).set({ comparedAt })
const CLOCK = sql`clock_timestamp()`

describe('GET /cron/sweep', () => {
  test('accepts only the scheduler’s token', async () => {
    expect(await cron()).toEqual({ status: 401, body: { error: 'missing bearer token', code: 'bearer-missing' } })
    const invalid = { error: 'invalid scheduler token', code: 'bearer-invalid' }
    expect(await cron(`Bearer ${SECRET}x`)).toEqual({ status: 401, body: invalid })
    const client = await fixture.client()
    expect((await cron(`Bearer ${client.session}`)).status).toBe(401)
    const settings = { ...fixture.running.settings, cronSecret: undefined }
    provideService(Promise.resolve({ ...fixture.running, settings }))
    expect((await sweep()).status).toBe(501)
  })

  test('purges used challenges that have expired', async () => {
    const at = (minutes: number) => new Date(Date.now() + minutes * 60_000)
    await fixture.db.insert(usedChallenges).values([
      { hash: 'old', expiresAt: at(-1) },
      { hash: 'new', expiresAt: at(1) },
    ])
    expect(await sweep()).toMatchObject({ status: 200, body: { challenges: 1 } })
    expect((await fixture.db.query.usedChallenges.findMany()).map(({ hash }) => hash)).toEqual(['new'])
  })

  test('activates contractors who have registered since', async () => {
    await fixture.engaged()
    await fixture.db.execute(sql`UPDATE contractors SET status = 'invited', pvk = NULL`)
    expect((await sweep()).body).toMatchObject({ contractors: 1 })
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
    await makeOverdue(jobId)
    await setCompared(CLOCK)
    fixture.ledger.proxy.rule(() => ({ status: 503 }))
    const { status, body } = await sweep()
    const failed = Object.keys(body).filter((part) => body[part] === null)
    expect([status, failed]).toEqual([200, ['contractors', 'channels', 'archive']])
    // The lines chore runs after the contractors chore, and the challenges chore after both.
    expect(body).toMatchObject({ lines: 1, challenges: 1 })
    expect((await fixture.read(client, jobId)).body.status).toBe('failed')
    expect(await fixture.db.$count(usedChallenges, eq(usedChallenges.hash, 'older'))).toBe(0)
    fixture.ledger.proxy.rule(null)
    expect((await sweep()).body).toMatchObject({ contractors: waiting, lines: 0 })
  })
})

test('pays a line from another channel when no relay has the seed of the one that leases it', async () => {
  const { client, payee, job: jobId } = await fixture.start(5)
  await fixture.db
    .update(relayLines)
    .set({ channel: 'GONE', leasedUntil: sql`clock_timestamp() + interval '2 s'` })
    .where(eq(relayLines.job, jobId))
  const { token } = fixture.ledger.network
  const seenAt = new Date(Date.now() - 11 * 60_000)
  await fixture.db.insert(relayChannels).values({ token, address: 'GONE', seenAt })
  await using _relay = await fixture.relay()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 5n])
  const [line] = await fixture.linesOf(jobId)
  expect(fixture.channels.map((channel) => channel.publicKey())).toContain(line?.channel)
  await fixture.db.delete(relayChannels).where(eq(relayChannels.address, 'GONE'))
})

test('fails lines after a day, even if a host leases them or they had a transfer, but none whose transfer is open', async () => {
  const client = await fixture.client()
  const jobId = await fixture.begin(client, 5, 6, 7)
  const other = await fixture.client()
  const sentId = await fixture.begin(other, 8)
  await fixture.db
    .update(relayLines)
    .set({ channel: 'ONE', leasedUntil: sql`clock_timestamp() + interval '1 hour'` })
    .where(isLine({ job: jobId, position: 1 }))
  const transfers = [
    transferRow({ account: 'TWO', status: 'expired', lineJob: jobId, linePosition: 2 }),
    transferRow({ account: 'THREE', lineJob: sentId, linePosition: 0, bid: 0n }),
  ]
  await insertRows(fixture.db, { transfers })
  const endings = async () => [(await sweep()).body.lines, (await fixture.read(client, jobId)).body]
  const running = { status: 'running', results: [] }
  expect(await endings()).toMatchObject([0, running])
  for (const id of [jobId, sentId]) await makeOverdue(id)
  expect(await endings()).toMatchObject([
    3,
    {
      status: 'failed',
      error: 'transfer 0: no relay could pay it within a day',
      results: [0, 1, 2].map((i) => ({ i, hash: '', status: 'FAILED' })),
    },
  ])
  expect((await fixture.read(other, sentId)).body).toMatchObject(running)
  await fixture.db.delete(transferRows).where(eq(transferRows.account, 'THREE'))
})

test('counts a job’s lines against its user’s quota, and fails a line beyond it', async () => {
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
