import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { get as ask, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { type Ground, openGround } from '../support/ground.ts'
import { freePort } from '../support/port.ts'

vi.setConfig({ testTimeout: 120_000 })

let ground: Ground
let directory: string
let variables: Record<string, string>
beforeAll(async () => {
  ground = await openGround()
  directory = mkdtempSync(join(tmpdir(), 'payroll-relay-'))
  // A relay signs no sessions, and needs no secret for them.
  const { SESSION_SECRET: _, ...rest } = ground.variables
  variables = { ...rest, FAUCET_SEED: ground.devnet.issuerSecret }
}, 120_000)
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true })
  await ground?.close()
})

interface Running {
  child: ChildProcess
  output(): string
}

function start(program: string, args: string[], env: Record<string, string>): Running {
  const child = spawn(process.execPath, [`lib/cli/${program}.ts`, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...env } as unknown as NodeJS.ProcessEnv,
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

const file = () => join(directory, 'channels.env')
const seeds = () => (parseEnv(readFileSync(file(), 'utf8')).CHANNEL_SEEDS ?? '').split(',')

async function balanceOf(seed: string): Promise<{ spendable: bigint; receiving: bigint }> {
  const { signer, keys } = openHolder(Keypair.fromSecret(seed), ground.network.token)
  const balance = await syncBalance(ground.network, { address: signer.publicKey(), vk: keys.vk })
  return { spendable: balance.spendable.value, receiving: balance.receiving.value }
}

const funded = { spendable: CHANNEL_FUNDS, receiving: 0n }

test('relay:setup makes channels fit, keeps their keys in the file alone, and may be run again', async () => {
  const first = await run('relay-setup', ['--channels', '2', '--keys', file()])
  expect(first).toMatchObject({ code: 0 })
  const made = seeds()
  expect(made).toHaveLength(2)
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(['channels.env'])
  for (const seed of made) {
    expect(await balanceOf(seed)).toEqual(funded)
    expect(first.output).toContain(Keypair.fromSecret(seed).publicKey())
    expect(first.output).not.toContain(seed)
  }
  const kept = readFileSync(file(), 'utf8')
  expect(await run('relay-setup', ['--channels', '2', '--keys', file()])).toMatchObject({ code: 0 })
  expect(readFileSync(file(), 'utf8')).toBe(kept)
  expect(await Promise.all(made.map(balanceOf))).toEqual([funded, funded])
})

test('relay:setup adds to a file, and takes up what was interrupted', async () => {
  const before = seeds()
  const cut = start('relay-setup', ['--channels', '3', '--keys', file()], variables)
  await expect.poll(cut.output, { timeout: 30_000, interval: 10 }).toContain('registering')
  cut.child.kill('SIGKILL')
  await once(cut.child, 'close')
  expect(await run('relay-setup', ['--channels', '3', '--keys', file()])).toMatchObject({ code: 0 })
  expect(seeds().slice(0, 2)).toEqual(before)
  expect(await Promise.all(seeds().map(balanceOf))).toEqual([funded, funded, funded])
})

test.each([
  [['--channels', '1'], {}, 'CHANNEL_SEEDS: '],
  [['--channels', '0'], {}, '--channels: '],
  [['--channels', '1'], { DATABASE_URL: '' }, 'DATABASE_URL: '],
  [['--channels', '1'], { STELLAR_RPC_URL: '' }, 'STELLAR_RPC_URL: '],
])('relay:setup %j with %j says what is wrong', async (args, env, problem) => {
  const { code, output } = await run('relay-setup', args, { ...variables, ...env })
  expect(code).toBe(1)
  expect(output.startsWith(problem)).toBe(true)
})

test('relay:setup leaves a file alone that is not one of relay keys', async () => {
  const other = join(directory, 'other.env')
  writeFileSync(other, 'hunter2')
  const { code, output } = await run('relay-setup', ['--channels', '1', '--keys', other])
  expect([code, output]).toEqual([1, expect.stringContaining('--keys: ')])
  expect(readFileSync(other, 'utf8')).toBe('hunter2')
  const whole = `${readFileSync(file(), 'utf8')}SESSION_SECRET='hunter2'\n`
  writeFileSync(other, whole)
  const again = await run('relay-setup', ['--channels', '1', '--keys', other])
  expect([again.code, again.output]).toEqual([1, expect.stringContaining('--keys: the file also has SESSION_SECRET')])
  expect(readFileSync(other, 'utf8')).toBe(whole)
})

test('relay answers with its two pages and nothing else, and ends at SIGTERM', async () => {
  const port = await freePort()
  const keys = parseEnv(readFileSync(file(), 'utf8')) as Record<string, string>
  const { child, output } = start('relay', [], { ...variables, ...keys, RELAY_PORT: String(port) })
  await expect.poll(output, { timeout: 30_000 }).toContain('/.well-known/disbursement-relay')
  const get = async (path: string, method = 'GET') => {
    const response = await fetch(`http://localhost:${port}${path}`, { method })
    return { status: response.status, body: await response.json() }
  }
  expect(await get('/health?x=1')).toEqual({ status: 200, body: { ok: true } })
  expect(await get('/.well-known/disbursement-relay')).toEqual({
    status: 200,
    body: {
      network: 'local',
      networkPassphrase: ground.network.passphrase,
      contracts: { token: ground.network.token },
      channels: seeds().map((seed) => Keypair.fromSecret(seed).publicKey()),
      publicKey: JSON.parse(keys.RELAY_PUBLIC_KEY ?? ''),
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
  // What is no URL ends the request, and not the process. fetch would mend it.
  for (const path of ['//', '/\\', '//health']) {
    const [answer] = (await once(ask({ port, path }), 'response')) as [IncomingMessage]
    answer.resume()
    expect([path, answer.statusCode]).toEqual([path, 404])
  }
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  for (const seed of seeds()) expect(output()).not.toContain(seed)
})

test('relay without its key says which, and does not start', async () => {
  const { code, output } = await run('relay', [])
  expect([code, output]).toEqual([1, expect.stringMatching(/^RELAY_PRIVATE_KEY: /)])
})
