import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openTestNetwork, type TestNetwork } from '#lib/cli/client/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { type Devnet, startDevnet } from '#lib/devnet/devnet.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { composeSettings } from '#lib/server/settings.ts'
import { readVariables } from '#lib/setup/env-file.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'

/** Runs the command against the embedded ledger. */

let devnet: Devnet
let network: TestNetwork
beforeAll(async () => {
  const passphrase = 'Standalone Network ; February 2017'
  devnet = await startDevnet({ directory: null, port: 0, closeMs: 200, passphrase })
  network = await openTestNetwork(`${devnet.url}/deployment.json`)
})
afterAll(async () => {
  await devnet?.close()
})

let directory: string
let file: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'payroll-setup-test-'))
  file = join(directory, 'service.env')
  return () => rmSync(directory, { recursive: true, force: true })
})

interface Running {
  child: ChildProcess
  stdout(): string
  stderr(): string
}

function start(args: string[], variables: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, ['lib/cli/setup.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...CHILD_VARIABLES,
      DEVNET_PROOFS: 'stand-in',
      FAUCET_SEED: devnet.issuerSecret,
      ...variables,
    } as unknown as NodeJS.ProcessEnv,
  })
  const [out, err]: [string[], string[]] = [[], []]
  child.stdout?.on('data', (part) => out.push(String(part)))
  child.stderr?.on('data', (part) => err.push(String(part)))
  return { child, stdout: () => out.join(''), stderr: () => err.join('') }
}

async function run(args: string[], variables?: Record<string, string>) {
  const { child, stdout, stderr } = start(['--deployment', `${devnet.url}/deployment.json`, ...args], variables)
  const [code] = await once(child, 'close')
  return { code: Number(code), stdout: stdout(), stderr: stderr() }
}

const variables = () => readVariables(readFileSync(file, 'utf8'))
const channels = () => (variables().CHANNEL_SEEDS ?? '').split(',').map((seed) => Keypair.fromSecret(seed))

async function balanceOf(signer: Keypair) {
  const balance = await syncBalance(network, openHolder(signer, network.token))
  return { spendable: balance.spendable.value, receiving: balance.receiving.value }
}

/** Everything that a transaction of these accounts, or a payment to them, would change. */
async function stateOf(keypairs: Keypair[]) {
  return await Promise.all(
    keypairs.map(async (keypair) => {
      const { balance, seqNum } = await network.rpc.getAccountEntry(keypair.publicKey())
      return { address: keypair.publicKey(), balance, seqNum }
    }),
  )
}

const SECRETS = ['SESSION_SECRET', 'SPONSOR_SEED', 'FAUCET_SEED', 'CHANNEL_SEEDS', 'RELAY_PRIVATE_KEY']

test('creates everything, prints no secret, and changes nothing when it runs again', async () => {
  const first = await run(['--channels', '2', '--env', file])
  expect(first).toMatchObject({ code: 0, stdout: '' })
  expect(readdirSync(directory)).toEqual(['service.env'])
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const afterFirst = variables()
  for (const name of SECRETS) {
    const secrets =
      name === 'RELAY_PRIVATE_KEY' ? [JSON.parse(afterFirst[name] ?? '').d] : (afterFirst[name] ?? '').split(',')
    for (const secret of secrets) {
      expect(secret).toMatch(/.{32}/)
      expect(first.stderr).not.toContain(secret)
    }
  }
  const settings = composeSettings(readEnvironment({ ...afterFirst, DATABASE_URL: 'postgres://h/d' }))
  expect(settings.faucet?.keypair.secret()).toBe(devnet.issuerSecret)
  expect(settings.batch?.key).toEqual(JSON.parse(afterFirst.RELAY_PUBLIC_KEY ?? ''))
  expect(settings.relay?.channels).toHaveLength(2)
  expect(settings.network).toMatchObject({ name: 'local', rpcUrl: devnet.rpcUrl, passphrase: network.passphrase })
  const sponsor = settings.sponsor?.keypair ?? Keypair.random()
  for (const channel of channels())
    expect(await balanceOf(channel)).toEqual({ spendable: 0n, receiving: CHANNEL_FUNDS })

  const accounts = [sponsor, Keypair.fromSecret(devnet.issuerSecret), ...channels()]
  const before = { state: await stateOf(accounts), text: readFileSync(file, 'utf8'), at: statSync(file).mtimeMs }
  expect(before.state[0]?.balance).toBe(10_000_0000000n)
  // The file now contains the faucet's key.
  const second = await run(['--channels', '2', '--env', file], { FAUCET_SEED: '' })
  expect(second).toMatchObject({ code: 0 })
  expect({ state: await stateOf(accounts), text: readFileSync(file, 'utf8'), at: statSync(file).mtimeMs }).toEqual(
    before,
  )
})

test('resumes a killed run with the same keys', async () => {
  const args = ['--deployment', `${devnet.url}/deployment.json`, '--channels', '2', '--env', file]
  for (const moment of ['registering', 'asking the faucet']) {
    const cut = start(args)
    await expect.poll(cut.stderr, { interval: 5 }).toContain(moment)
    cut.child.kill('SIGKILL')
    await once(cut.child, 'close')
  }
  const cut = readFileSync(file, 'utf8')
  expect(readVariables(cut)).toMatchObject({ CHANNEL_SEEDS: expect.stringMatching(/^S\w{55},S\w{55}$/) })
  expect(await run(['--channels', '2', '--env', file])).toMatchObject({ code: 0 })
  expect(readFileSync(file, 'utf8')).toBe(cut)
  for (const channel of channels()) {
    const { spendable, receiving } = await balanceOf(channel)
    expect(spendable + receiving).toBe(CHANNEL_FUNDS)
  }
})

test('prints only the environment to standard output', async () => {
  const sponsor = Keypair.random().secret()
  const { code, stdout, stderr } = await run(['--channels', '1', '--env', '-', '--sponsor-seed', sponsor])
  expect(code).toBe(0)
  expect(stdout.split('\n').every((line) => /^(|# .*|[A-Z_]+=.+)$/.test(line))).toBe(true)
  const variables = readVariables(stdout)
  expect(variables).toMatchObject({ SPONSOR_SEED: sponsor, CONFIDENTIAL_TOKEN: network.token, BATCH_ENABLED: 'true' })
  expect(stderr).toContain('transfer settled')
  const { code: again, stdout: same } = await run(['--channels', '1', '--env', '-'], variables)
  expect([again, same]).toEqual([0, stdout])
})

test('keeps other lines, adds channels, and changes nothing on a contradiction', async () => {
  const own = '# mine\nDATABASE_URL=postgres://u:p@db.invalid/payroll\nFAUCET_AMOUNT=5\n'
  writeFileSync(file, own, { mode: 0o644 })
  expect(await run(['--channels', '0', '--env', file])).toMatchObject({ code: 0 })
  const without = readFileSync(file, 'utf8')
  expect(without.startsWith(own)).toBe(true)
  expect(without).not.toMatch(/CHANNEL|RELAY|BATCH/)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(await run(['--channels', '1', '--env', file])).toMatchObject({ code: 0 })
  const [one] = channels()
  expect(await run(['--channels', '2', '--env', file])).toMatchObject({ code: 0 })
  expect(channels()).toHaveLength(2)
  expect(channels()[0]?.secret()).toBe(one?.secret())
  expect(await run(['--channels', '5', '--env', file])).toMatchObject({ code: 0 })
  // A later run prepares all of them, without being told their number.
  const { stderr } = await run(['--env', file])
  for (const channel of channels()) expect(stderr).toContain(`channel  ${channel.publicKey()}, ready`)
  expect(channels()).toHaveLength(5)
  const envText = readFileSync(file, 'utf8')
  expect(envText.startsWith(without)).toBe(true)
  const other = await run(['--env', file], { SPONSOR_SEED: Keypair.random().secret() })
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('SPONSOR_SEED: has another value in ')])
  expect(readFileSync(file, 'utf8')).toBe(envText)
})

test.each([
  [['--deployment', ''], {}, '--deployment: is required'],
  [['--deployment', 'http://127.0.0.1:1/deployment.json'], {}, '--deployment: cannot be read: '],
  [['--channels', '101'], {}, '--channels: '],
  [[], { FAUCET_SEED: 'GBAD' }, 'FAUCET_SEED: '],
])('rejects %j with %j, naming the problem and writing no file', async (args, variables, problem) => {
  const { code, stdout, stderr } = await run(['--env', file, ...args], variables)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain(problem)
  expect(existsSync(file)).toBe(false)
})

test('adds the relay to a deployment document that is a file, and keeps the rest', async () => {
  const document = join(directory, 'deployment.json')
  const served = { ...devnet.deployment, extra: { auditor: 'kept' } }
  writeFileSync(document, JSON.stringify(served), { mode: 0o640 })
  const { code } = await run(['--deployment', document, '--channels', '1', '--env', file])
  expect(code).toBe(0)
  const relay = {
    publicKey: JSON.parse(variables().RELAY_PUBLIC_KEY ?? ''),
    channels: channels().map((each) => each.publicKey()),
  }
  expect(JSON.parse(readFileSync(document, 'utf8'))).toEqual({ ...served, relay })
  expect(statSync(document).mode & 0o777).toBe(0o640)
  expect((await openTestNetwork(document)).relay).toEqual(relay)
})

test('replaces the relay of another service only if it is told to, and makes nothing before', async () => {
  const document = join(directory, 'deployment.json')
  const publicKey = publicHalf(generateRelayKey())
  const foreign = { ...devnet.deployment, relay: { publicKey, channels: [Keypair.random().publicKey()] } }
  writeFileSync(document, JSON.stringify(foreign))
  const args = ['--deployment', document, '--channels', '1', '--env', file]
  const refused = await run(args)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(/relay of another service.*--replace-relay/)
  expect(refused.stderr).not.toMatch(/^sponsor/m)
  expect([existsSync(file), JSON.parse(readFileSync(document, 'utf8'))]).toEqual([false, foreign])
  expect((await run([...args, '--replace-relay'])).code).toBe(0)
  expect((await openTestNetwork(document)).relay?.channels).toEqual(channels().map((each) => each.publicKey()))
})
