import { Client } from 'pg'
import { expect, inject, test } from 'vitest'
import { readiness } from '#lib/server/readiness.ts'
import { startRelay } from '#lib/server/relay.ts'
import { disposable } from '../support/disposable.ts'
import { makeGate } from '../support/gate.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { serveJobs } from './relay-service.ts'
import { SHORT_TIMES } from './short-times.ts'

const fixture = await serveJobs({ channels: 3 })

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test.each([
  ['is down', { status: 503 }],
  ['takes what is sent and says nothing', { drop: true, delivered: true }],
] as const)('the RPC %s for 30 seconds: jobs wait, then finish with each line paid once', async (_, fault) => {
  await using _relay = await fixture.relay()
  const { client, payee } = await fixture.engaged()
  // In the middle of the job: from the third transfer on.
  let sent = 0
  fixture.ledger.proxy.rule((call) => {
    if (call.method === 'sendTransaction') sent += 1
    return sent > 2 ? fault : 'pass'
  })
  const jobId = await fixture.begin(client, 1, 2, 4, 8, 16, 32)
  await expect.poll(() => sent).toBeGreaterThan(2)
  const other = await fixture.engaged()
  const second = await fixture.begin(other.client, 64, 128)
  await pause(27_000)
  expect((await fixture.read(client, jobId)).body.status).toBe('running')
  expect((await fixture.read(other.client, second)).body).toMatchObject({ status: 'running', results: [] })
  fixture.ledger.proxy.rule(null)
  await expectJobPaidOnce(fixture, client, jobId, [payee, 63n])
  await expectJobPaidOnce(fixture, other.client, second, [other.payee, 192n])
})

/** Cuts every connection to the test's database and rejects new ones until the returned function is called. */
async function takeDatabaseAway(): Promise<() => Promise<void>> {
  const name = new URL(fixture.database.url).pathname.slice(1)
  const server = new Client({ connectionString: inject('postgres')?.serverUrl })
  await server.connect()
  await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
  const cut = () => server.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name])
  await cut()
  // A host may have been connecting just then.
  await cut()
  return async () => {
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
    await server.end()
  }
}

test('pays each line once when the database goes away under load and comes back', async () => {
  await using _relay = await fixture.relay()
  const people = await Promise.all(Array.from({ length: 4 }, () => fixture.engaged()))
  const jobs = await Promise.all(people.map(({ client }) => fixture.begin(client, 1, 2, 4, 8)))
  for (const waited of [300, 700, 1_100]) {
    await pause(waited)
    const giveBack = await takeDatabaseAway()
    await pause(1_000)
    await giveBack()
  }
  for (const [index, { client, payee }] of people.entries())
    await expectJobPaidOnce(fixture, client, jobs[index] ?? '', [payee, 15n])
  const { rows } = (await fixture.db.execute(
    `SELECT count(*)::int AS open FROM transfers WHERE status = 'open'`,
  )) as unknown as { rows: { open: number }[] }
  expect(rows).toEqual([{ open: 0 }])
  expect((await readiness({ ...fixture.running })).relay).toMatchObject({ ok: true })
})

test('pays each line once when a host loses its connection between the COMMIT of a payment’s record and the response', async () => {
  await using gate = disposable(await openGate())
  await fixture.withVariables({ DATABASE_URL: gate.url }, async (other) => {
    await using _host = disposable(await startRelay(other, { times: SHORT_TIMES }))
    const { client, payee } = await fixture.engaged()
    gate.loseCommit('insert into "envelopes"')
    await expectJobPaidOnce(fixture, client, await fixture.begin(client, 1, 2), [payee, 3n])
  })
  expect(gate.commitsLost()).toBe(1)
})

async function openGate() {
  const gate = await makeGate(fixture.database.url)
  await gate.open()
  return { ...gate, close: gate.shut }
}
