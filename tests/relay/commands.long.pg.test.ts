import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { get as ask, type IncomingMessage } from 'node:http'
import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chores } from '#drizzle/schema/chores.ts'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { insertRows, itemRow, jobRow } from '#lib/cli/seed/rows.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { freePort } from '../support/port.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'embedded'>
let variables: Record<string, string>
beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded', choresEveryMs: 0 })
  // A relay signs no sessions, and needs no secret for them.
  const { SESSION_SECRET: _, ...rest } = service.variables
  variables = { ...rest, FAUCET_SEED: service.ledger.devnet.issuerSecret }
})
afterAll(async () => {
  await service?.close()
})

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
  await expect
    .poll(() => get('/health?x=1'))
    .toEqual({
      status: 200,
      body: { ok: true, ledger: true, clockOffsetSeconds: expect.any(Number), problems: [], runs: true },
    })
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
  // The relay of an earlier test may have begun them a moment ago.
  await service.db.update(chores).set({ begunAt: new Date(0) })
  const { child, output } = start('relay', [], { ...variables, ...keys, RELAY_PORT: String(await freePort()) })
  try {
    await expect.poll(output).toContain('/.well-known/disbursement-relay')
    const read = () => service.db.select().from(relayLines).where(eq(relayLines.job, job.id))
    await expect.poll(read).toMatchObject([{ outcome: 'failed', error: 'no relay could pay it within a day' }])
  } finally {
    child.kill('SIGTERM')
    await once(child, 'close')
  }
})

test('relay release says why it does not release a channel', async () => {
  const address = Keypair.random().publicKey()
  const known = await run('relay', ['release', address], { ...variables, ...keys })
  expect(known).toEqual({
    code: 1,
    output: expect.stringContaining(`${address}: the database has no such channel for this token`),
  })
  const wrong = await run('relay', ['release', 'G1'], { ...variables, ...keys })
  expect(wrong).toEqual({ code: 1, output: expect.stringContaining('release and a channel’s address') })
})

test('relay release adopts the sequence number of a channel that has moved', async () => {
  const { network } = service.ledger
  const [seed = ''] = seeds
  const { address } = await enrol(network, Keypair.fromSecret(seed))
  const moved = { problem: 'moved' as const, movedAt: new Date(), adoptedSequence: 1n }
  await service.db
    .insert(relayChannels)
    .values({ token: network.token, address, seenAt: new Date(), ...moved })
    .onConflictDoUpdate({ target: [relayChannels.token, relayChannels.address], set: moved })
  expect(await run('relay', ['release', address], { ...variables, ...keys })).toEqual({
    code: 0,
    output: expect.stringContaining(`released ${address}: 0 missing transfers recorded, 0 `),
  })
  const channels = await service.db.query.relayChannels.findMany()
  const adoptedSequence = BigInt((await network.rpc.getAccount(address)).sequenceNumber())
  // Until the next check of a relay.
  expect(channels.find((channel) => channel.address === address)).toMatchObject({ problem: 'account', adoptedSequence })
})
