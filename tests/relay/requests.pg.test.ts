import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { paymentStops, relayChannels } from '#drizzle/schema/relay.ts'
import { mintSession } from '#lib/auth/session.ts'
import { batchRow, insertRows, jobRow, organisationRow } from '#lib/cli/seed/rows.ts'
import { transact } from '#lib/db/connection.ts'
import { readTokenEvents } from '#lib/relay/channel-events.ts'
import { provideService } from '#lib/server/services.ts'
import { stopPayments } from '#lib/transfers/stop.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { signManifest } from '#lib/wallet/manifest.ts'
import { isMarkedFor, markKeyOf } from '#lib/wallet/payment-mark.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { captureLog } from '../support/console.ts'
import { fieldsOf } from '../support/directory.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { serveJobs } from './relay-service.ts'
import { openRunFixture } from './run-fixture.ts'

const fixture = await serveJobs({ channels: 2 })
afterEach(() => {
  vi.restoreAllMocks()
  provideService(Promise.resolve(fixture.running))
})

const RULE = 'amounts must be 1–10 positive integers'

describe('amounts', () => {
  const bad: [string, unknown][] = [
    ['none', []],
    ['eleven', Array.from({ length: 11 }, () => 1)],
    ['zero', [1, 0]],
    ['a negative one', [-1]],
    ['a fraction', [1.5]],
    ['a string', ['1']],
    ['2^53', [2 ** 53]],
    ['beyond a double', [1e300]],
    ['null', null],
    ['null in it', [null]],
    ['a number', 5],
    ['an object', { 0: 1 }],
    ['nested', [[1]]],
    ['true', [true]],
  ]
  test.each(bad)('%s: 400', async (_, amounts) => {
    const client = await fixture.client()
    expect(await fixture.post(client, { amounts })).toEqual({
      status: 400,
      body: { error: RULE, code: 'amounts-invalid' },
    })
  })

  test.each([[[1]], [[2 ** 53 - 1]], [Array.from({ length: 10 }, (_, i) => i + 1)]])(
    'accepts the amounts %j',
    async (amounts) => {
      const client = await fixture.client()
      const { status, body } = await fixture.post(client, { amounts })
      expect([status, body.status]).toEqual([200, 'running'])
      expect(body.jobId).toMatch(/^[0-9a-f-]{36}$/)
      expect(Object.keys(body).sort()).toEqual(['jobId', 'status'])
    },
  )

  test('rejects a body that is not an object, and runs the default batch without amounts', async () => {
    const client = await fixture.client()
    expect((await fixture.post(client, [1])).body).toEqual({ error: RULE, code: 'body-invalid' })
    const { body } = await fixture.post(client)
    const lines = await fixture.db.execute(sql`SELECT 1 FROM relay_lines WHERE job = ${String(body.jobId)}`)
    expect((lines as unknown as { rows: unknown[] }).rows).toHaveLength(3)
    expect((await fixture.post(await fixture.client(), { notes: 'x' })).status).toBe(200)
  })
})

describe('a job', () => {
  test('is the user’s only one: of ten concurrent requests, nine get a 409', async () => {
    const client = await fixture.client()
    const answers = await Promise.all(Array.from({ length: 10 }, () => fixture.post(client, { amounts: [1] })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 409)])
    const taken = answers.find(({ status }) => status === 200)
    const jobId = taken?.body.jobId
    for (const { body } of answers.filter(({ status }) => status === 409)) {
      expect(body).toEqual({ error: 'a batch job is already running', code: 'job-running', jobId })
    }
    expect((await fixture.post(await fixture.client(), { amounts: [1] })).status).toBe(200)
  })

  test('is a 404 for other users, for an unknown id and for a malformed one', async () => {
    const client = await fixture.client()
    const before = Date.now()
    const jobId = await fixture.begin(client, 1)
    const own = await fixture.read(client, jobId)
    expect(own).toMatchObject({ status: 200, body: { jobId, status: 'running', results: [] } })
    expect(Number.isInteger(own.body.createdAt)).toBe(true)
    expect(own.body.createdAt >= before && own.body.createdAt <= Date.now()).toBe(true)
    const unknown = { status: 404, body: { error: 'unknown job', code: 'job-not-found' } }
    expect(await fixture.read(await fixture.client(), jobId)).toEqual(unknown)
    expect(
      await fixture.read(
        client,
        jobId.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
      ),
    ).toEqual(unknown)
    expect(await fixture.read(client, "1' OR 1=1")).toEqual(unknown)
  })

  test('is hidden from an idp user whose sub is its owner’s address', async () => {
    const client = await fixture.client()
    const jobId = await fixture.begin(client, 1)
    const identity = { kind: 'idp', sub: client.address, issuer: 'https://login.example' } as const
    const session = await mintSession(fixture.running.settings.sessions, identity, new Date())
    expect((await fixture.read({ ...client, session }, jobId)).status).toBe(404)
    expect((await fixture.post({ ...client, session }, { amounts: [1] })).status).toBe(200)
  })

  test('is not a run of the user: a run is read as the status of its batch', async () => {
    const client = await fixture.client()
    const jobId = await fixture.begin(client, 1)
    const organisation = organisationRow()
    const batch = batchRow({ organisation: organisation.id })
    const run = jobRow({
      userKind: 'ledger',
      userSub: client.address,
      createdAt: new Date(Date.now() + 60_000),
      batch: batch.id,
      manifest: 'manifest',
      signature: 'signature',
      quotaDay: '2026-11-20',
    })
    await insertRows(fixture.db, { organisations: [organisation], batches: [batch], jobs: [run] })
    expect((await fixture.read(client, run.id)).status).toBe(404)
    expect((await fixture.post(client, { amounts: [1] })).body).toMatchObject({ code: 'job-running', jobId })
  })

  test('is a 501 for any body while batch execution is disabled', async () => {
    provideService(Promise.resolve({ ...fixture.running, batch: undefined }))
    const client = await fixture.client()
    expect(await fixture.post(client, { amounts: [] })).toEqual({
      status: 501,
      body: { error: 'batch execution is disabled', code: 'batch-disabled' },
    })
  })
})

describe('while payments are stopped', () => {
  const stop = () => {
    const [channel] = fixture.channels
    const given = { token: fixture.ledger.network.token, channel: channel?.publicKey() ?? '', now: new Date() }
    return transact(fixture.db, (tx) => stopPayments(tx, given))
  }
  afterEach(async () => {
    fixture.ledger.proxy.rule(null)
    await fixture.db.delete(paymentStops)
  })

  test('a client’s transfer that may pay an older payout is a 422, to be sent again later', async () => {
    const { batchOf, employer, pay } = openRunFixture(fixture)
    const batch = await batchOf(await employer(10n), [4n])
    const { first: payout } = batch
    await stop()
    const { status, body, headers } = await pay(batch.employer, payout, 4n)
    expect([status, body.code, headers.get('Retry-After')]).toEqual([422, 'reconciling', '30'])
    expect(body.error).toMatch(/^sponsor refused: payments are stopped until /)
    await fixture.db.delete(paymentStops)
    expect(await pay(batch.employer, payout, 4n)).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
  })

  test('no run starts, also if they stop while its request is checked', async () => {
    const { ask, batchOf, channel, delegate, employer, jobsOf, manifestOf, run } = openRunFixture(fixture)
    const batch = await batchOf(await employer(10n), [4n])
    await delegate(batch.employer, 4n)
    await fixture.db.update(relayChannels).set({ runs: true, problem: null })
    const refused = {
      status: 409,
      body: { code: 'run-not-ready', errors: [{ channel, reason: 'channel-unavailable' }] },
    }
    await stop()
    expect(await run(batch)).toMatchObject(refused)
    await fixture.db.delete(paymentStops)
    const signature = await signManifest(keypairSigner(batch.employer.signer), await manifestOf(batch))
    let isFirst = true
    fixture.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
      if (method === 'getLedgerEntries' && isFirst) {
        isFirst = false
        await stop()
      }
      return 'pass'
    })
    expect(await ask(batch.employer, 'POST', `/batches/${batch.id}/run`, { signature })).toMatchObject(refused)
    expect(isFirst).toBe(false)
    expect(await jobsOf(batch)).toEqual([])
    fixture.ledger.proxy.rule(null)
    await fixture.db.delete(paymentStops)
    expect((await run(batch)).status).toBe(200)
  })
})

test('a client’s transfer that is marked with its purpose shows it on the ledger to the sender’s mark key', async () => {
  const { network } = fixture.ledger
  const [sender, other] = [await fixture.employ(10n), await fixture.employ(0n)]
  const { spendable: opening } = await syncBalance(network, sender)
  const purpose = randomUUID()
  const transfer = { to: (await fixture.payee()).address, amount: 4n, opening, purpose }
  const { signedXdr } = await buildTransfer(network, sender, transfer)
  expect(
    (await fixture.ask('POST', '/transfer', { session: sender.session, body: { signedXDR: signedXdr } })).status,
  ).toBe(200)
  const source = { network: fixture.running.network, token: network.token }
  const [event, ...others] = (await readTokenEvents(source, sender.address, undefined)).transfers
  if (!event || others.length > 0) throw new Error('the ledger does not show the one transfer')
  const isRead = (vk: bigint, purpose: string) => isMarkedFor({ signer: markKeyOf(vk) }, event.salt, purpose, false)
  expect(isRead(sender.keys.vk, purpose)).toBe(true)
  expect([isRead(sender.keys.vk, randomUUID()), isRead(other.keys.vk, purpose)]).toEqual([false, false])
})

test('pays the contractors of a job of ten in turn, each the exact amounts', async () => {
  await using _relay = await fixture.relay()
  const client = await fixture.client()
  const [first, second] = [await fixture.payee(), await fixture.payee()]
  await fixture.hire(client, [first.signer.publicKey(), second.signer.publicKey()])
  const amounts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 9_007_199_254]
  const started = await fixture.post(client, { amounts })
  expect(started).toMatchObject({ status: 200, body: { status: 'running' } })
  const ofFirst = 1n + 4n + 16n + 64n + 256n
  const ofSecond = 2n + 8n + 32n + 128n + 9_007_199_254n
  const jobId = String(started.body.jobId)
  const job = await expectJobPaidOnce(fixture, client, jobId, [first, ofFirst], [second, ofSecond])
  expect(job.results.map(({ i }) => i)).toEqual(amounts.map((_, index) => index))
})

test('does not pay a contractor who was removed before the job started', async () => {
  await using _relay = await fixture.relay()
  const { client, payee: removed } = await fixture.engaged()
  const { session } = client
  const [id] = fieldsOf(await fixture.ask('GET', '/contractors', { session }), 'contractors', 'id')
  expect((await fixture.ask('DELETE', `/contractors/${id}`, { session })).status).toBe(200)
  const kept = await fixture.payee()
  await fixture.hire(client, [kept.address])
  await expectJobPaidOnce(fixture, client, await fixture.begin(client, 3, 4), [removed, 0n], [kept, 7n])
})

/** The text of every table in every schema. */
async function dump(): Promise<string> {
  const { rows } = (await fixture.db.execute(
    sql`SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  )) as unknown as { rows: { name: string }[] }
  const tables = await Promise.all(
    rows.map(async ({ name }) => [
      name,
      await fixture.db.execute(sql.raw(`SELECT row_to_json(t) AS row FROM ${name} t`)),
    ]),
  )
  return JSON.stringify(tables.map(([name, result]) => [name, (result as unknown as { rows: unknown[] }).rows]))
}

test('keeps amounts out of every table and the log before, during and after a job', async () => {
  const lines = captureLog()
  const client = await fixture.client()
  const amounts = [834_025_198_331, 912_837_465_019]
  const jobId = await fixture.begin(client, ...amounts)
  const dumps = [await dump()]
  // Until a dump shows the row of a submitted transfer.
  const sendAll = fixture.holdSends()
  await using _relay = await fixture.relay()
  await expect.poll(async () => dumps[dumps.push(await dump()) - 1]).toContain('"line_job":"')
  sendAll()
  fixture.ledger.proxy.rule(null)
  while ((await fixture.read(client, jobId)).body.status === 'running') dumps.push(await dump())
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'completed' })
  dumps.push(await dump())
  expect(dumps[0]).toContain(jobId)
  const spellings = amounts.flatMap((amount) => [
    String(amount),
    amount.toString(16),
    `${Math.floor(amount / 1e7)}.${String(amount % 1e7).padStart(7, '0')}`,
    Buffer.from(String(amount)).toString('base64').replace(/=+$/, ''),
    Buffer.from(String(amount).padStart(16, '0')).toString('base64').replace(/=+$/, ''),
  ])
  for (const text of [...dumps, lines.join('\n')]) {
    expect(spellings.filter((spelling) => text.includes(spelling))).toEqual([])
  }
  expect(lines.some((line) => line.includes('payment recorded') && line.includes(jobId))).toBe(true)
  const ended = await fixture.db.query.relayLines.findMany({ where: (line, { eq }) => eq(line.job, jobId) })
  expect(ended.map(({ outcome, sealedAmount }) => [outcome, sealedAmount])).toEqual([
    ['paid', null],
    ['paid', null],
  ])
  for (const { queuedAt, sentAt, settledAt } of ended) {
    expect([queuedAt, sentAt, settledAt].map(Number)).toEqual([queuedAt, sentAt, settledAt].map(Number).sort())
  }
})
