import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { get as ask, type IncomingMessage } from 'node:http'
import { Keypair } from '@stellar/stellar-sdk'
import { eq, ne } from 'drizzle-orm'
import { afterAll, expect, test } from 'vitest'
import { paymentStops, relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { insertRows, itemRow, jobRow } from '#lib/cli/seed/rows.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { freePort } from '../support/port.ts'
import { openTestService } from '../support/test-service.ts'

const service = await openTestService({ ledger: 'embedded', choresEveryMs: 0 })
afterAll(service.close)
// A relay signs no sessions, and needs no secret for them.
const { SESSION_SECRET: _, ...others } = service.variables
const variables: Record<string, string> = { ...others, FAUCET_SEED: service.ledger.devnet.issuerSecret }

interface Running {
  child: ChildProcess
  output(): string
}

function start(program: string, args: string[], env: Record<string, string>): Running {
  const child = spawn(process.execPath, [`lib/cli/${program}.ts`, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...CHILD_VARIABLES, ...env } as unknown as NodeJS.ProcessEnv,
  })
  const parts: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part) => parts.push(String(part)))
  return { child, output: () => parts.join('') }
}

async function run(program: string, args: string[], env = variables): Promise<{ code: number; output: string }> {
  const { child, output } = start(program, args, env)
  const [code] = await once(child, 'close')
  return { code, output: output() }
}

const seeds = [Keypair.random().secret(), Keypair.random().secret()]
const key = generateRelayKey()
const keys = { CHANNEL_SEEDS: seeds.join(','), RELAY_PRIVATE_KEY: JSON.stringify(key) }

test.each([
  [{ DATABASE_URL: '' }, 'DATABASE_URL: '],
  [{ STELLAR_RPC_URL: '' }, 'STELLAR_RPC_URL: '],
  [{ RELAY_PRIVATE_KEY: '' }, 'RELAY_PRIVATE_KEY: '],
])('relay with %j names the variable and does not start', async (wrong, problem) => {
  const { code, output } = await run('relay', [], { ...variables, ...keys, ...wrong })
  expect(code).toBe(1)
  expect(output.startsWith(problem)).toBe(true)
})

test('relay serves two pages and nothing else, and exits on SIGTERM', async () => {
  const port = await freePort()
  const { child, output } = start('relay', [], { ...variables, ...keys, RELAY_PORT: String(port) })
  await expect.poll(output).toContain('/.well-known/disbursement-relay')
  const get = async (path: string, method = 'GET') => {
    const response = await fetch(`http://localhost:${port}${path}`, { method })
    return { status: response.status, body: await response.json() }
  }
  const problems = ['no channel of this host can pay']
  const body = { ok: false, ledger: true, clockOffsetSeconds: expect.any(Number), problems, runs: true }
  await expect.poll(() => get('/health?x=1')).toEqual({ status: 200, body })
  expect((await fetch(`http://localhost:${port}/health`, { method: 'HEAD' })).status).toBe(200)
  expect(await get('/.well-known/disbursement-relay')).toEqual({
    status: 200,
    body: {
      network: 'local',
      networkPassphrase: service.ledger.network.passphrase,
      contracts: { token: service.ledger.network.token },
      channels: seeds.map((seed) => Keypair.fromSecret(seed).publicKey()),
      publicKey: publicHalf(key),
    },
  })
  for (const [path, method] of [
    ['/', 'GET'],
    ['/api/batch', 'GET'],
    ['/health', 'POST'],
    ['/health/', 'GET'],
  ] as const) {
    const message = `Route ${method}:${path} not found`
    expect(await get(path, method)).toEqual({ status: 404, body: { statusCode: 404, error: 'Not Found', message } })
  }
  // A path that is not a URL must not crash the process. fetch would normalise it, hence http.get.
  for (const path of ['//', '/\\', '//health']) {
    const [answer] = (await once(ask({ port, path }), 'response')) as [IncomingMessage]
    answer.resume()
    expect([path, answer.statusCode]).toEqual([path, 404])
  }
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  for (const seed of seeds) expect(output()).not.toContain(seed)
})

test('relay fails the overdue lines of jobs, even if only the service has BATCH_ENABLED', async () => {
  const job = jobRow({ relayKey: await keyIdOf(publicHalf(key)) })
  const queuedAt = new Date(Date.now() - 25 * 60 * 60_000)
  await insertRows(service.db, { jobs: [job], items: [itemRow({ job: job.id, queuedAt })] })
  expect(variables).not.toHaveProperty('BATCH_ENABLED')
  const { child, output } = start('relay', [], { ...variables, ...keys, RELAY_PORT: String(await freePort()) })
  try {
    await expect.poll(output).toContain('/.well-known/disbursement-relay')
    const read = () => service.db.select().from(relayLines).where(eq(relayLines.job, job.id))
    await expect.poll(read).toMatchObject([{ outcome: 'failed', error: 'too-late' }])
  } finally {
    child.kill('SIGTERM')
    await once(child, 'close')
  }
})

/** Runs a command of an operator. */
const operate = (...args: string[]) => run('relay', args, { ...variables, ...keys })
const refused = (reason: string) => ({ code: 1, output: expect.stringContaining(reason) })

test('relay resume and relay retire say why they do nothing', async () => {
  const address = Keypair.random().publicKey()
  expect(await operate('resume', '--note', 'why')).toEqual(refused('payments are not stopped'))
  expect(await operate('resume')).toEqual(refused('resume needs --note: it goes to the audit log'))
  expect(await operate('retire', address)).toEqual(refused('retire needs --note: it goes to the audit log'))
  expect(await operate('retire', address, '--note', 'why')).toEqual(
    refused(`there is no channel ${address} of this token, or it is retired already`),
  )
  expect(await operate('retire', 'G1', '--note', 'why')).toEqual(refused('retire and a channel’s address'))
})

test('relay resume lets payments go on, and relay retire ends the comparison of a channel', async () => {
  const { token } = service.ledger.network
  const address = Keypair.random().publicKey()
  const { db } = service
  await db.insert(relayChannels).values({ token, address, seenAt: new Date() })
  const isThis = eq(relayChannels.address, address)
  const reconciled = { reconciledStop: new Date() }
  await db.update(relayChannels).set(reconciled).where(ne(relayChannels.address, address))
  const stop = { since: reconciled.reconciledStop, found: 0 }
  await db
    .insert(paymentStops)
    .values({ token, ...stop })
    .onConflictDoUpdate({ target: paymentStops.token, set: stop })
  const waits = `the relays are still reconciling channel ${address}: payments go on by themselves`
  expect(await operate('resume', '--note', 'why')).toEqual(refused(waits))
  await db.update(relayChannels).set({ reconcileProblem: 'history-gap' }).where(isThis)
  const resumed = { code: 0, output: expect.stringContaining('payments go on') }
  expect(await operate('resume', '--note', 'the payees were asked')).toEqual(resumed)
  expect((await db.select().from(paymentStops)).map(({ since }) => since)).toEqual([null])
  const retired = { code: 0, output: expect.stringContaining(`retired ${address}`) }
  expect(await operate('retire', address, '--note', 'its seed is lost')).toEqual(retired)
  expect(await db.select().from(relayChannels).where(isThis)).toMatchObject([{ retired: true }])
  const entries = await db.query.auditLog.findMany({ orderBy: (entry) => entry.sequence })
  expect(entries.slice(-2)).toMatchObject([
    { actorKind: 'operator', actorSub: 'command line', action: 'payments.resumed', subjectId: token },
    { action: 'channel.retired', subjectId: address, detail: { note: 'its seed is lost' } },
  ])
  expect(entries.at(-2)?.detail).toEqual({ note: 'the payees were asked', found: 0, suspended: 0, unreconciled: 1 })
})
