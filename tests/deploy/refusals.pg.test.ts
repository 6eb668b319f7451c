import { readFileSync } from 'node:fs'
import { Keypair, Networks } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { GET as getHealth } from '#app/api/health/route.ts'
import { ConfigurationError, readEnvironment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import { readEntries } from '#lib/stellar/entries.ts'
import { cloneDatabase } from '../support/database.ts'
import { type FakeRpc, startFakeRpc, TOKEN } from '../support/fake-rpc.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'

const STANDALONE = 'Standalone Network ; February 2017'
const [sponsor, channel] = [Keypair.random().secret(), Keypair.random().secret()]

let database: Awaited<ReturnType<typeof cloneDatabase>>
let rpc: FakeRpc
let way: FaultProxy

beforeAll(async () => {
  database = await cloneDatabase()
  rpc = await startFakeRpc({ passphrase: Networks.PUBLIC })
  way = await startFaultProxy(rpc.url)
})
afterAll(async () => {
  await way.close()
  await rpc.close()
  await database.drop()
})

/**
 * The variables that Vercel and the owner set for a preview deployment. The RPC is a local address, so that no test
 * accesses the internet.
 */
const preview = (more: Record<string, string> = {}) => ({
  VERCEL: '1',
  VERCEL_ENV: 'preview',
  VERCEL_BRANCH_URL: 'payroll-git-next-us.vercel.app',
  POSTGRES_URL: database.url,
  SPONSOR_SEED: sponsor,
  SESSION_SECRET: 'a secret for tests, long enough for HS256',
  STELLAR_RPC_URL: 'http://127.0.0.1:1',
  ...more,
})

async function start(variables: Record<string, string>): Promise<RunningService> {
  return await startService(readEnvironment(variables))
}

describe('startup rejects, naming the variable,', () => {
  test.each<[string, string, Record<string, string>]>([
    ['the main network', 'STELLAR_NETWORK', { STELLAR_NETWORK: 'public' }],
    ['its passphrase', 'DEVNET_PASSPHRASE', { STELLAR_NETWORK: 'local', DEVNET_PASSPHRASE: Networks.PUBLIC }],
    ['a short secret', 'SESSION_SECRET', { SESSION_SECRET: 'x'.repeat(31) }],
    ['no secret', 'SESSION_SECRET', { SESSION_SECRET: '' }],
    ['the embedded ledger on Vercel', 'STELLAR_NETWORK', { STELLAR_NETWORK: 'local', STELLAR_RPC_URL: '' }],
    ['the embedded database on Vercel', 'DATABASE_URL', { POSTGRES_URL: '' }],
    ['a wait longer than the function may run', 'TRANSFER_WAIT', { TRANSFER_WAIT: '60' }],
    ['a sponsor that is a channel', 'CHANNEL_SEEDS', { CHANNEL_SEEDS: `${channel},${sponsor}` }],
    ['a sponsor that is the faucet', 'FAUCET_SEED', { FAUCET_SEED: sponsor }],
    ['a sponsor that signs challenges', 'SEP10_SEED', { SEP10_SEED: sponsor }],
  ])('%s: %s', async (_, variable, wrong) => {
    const error = await start(preview(wrong)).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(error).toMatchObject({ variable })
    expect(String(error)).not.toContain(sponsor)
  })

  test.each([
    ['testnet', {}],
    ['local', { STELLAR_NETWORK: 'local' }],
  ])('rejects an RPC of the main network for %s', async (_, network) => {
    const starting = start(preview({ ...network, STELLAR_RPC_URL: rpc.url }))
    await expect(starting).rejects.toMatchObject({ name: 'ConfigurationError', variable: 'STELLAR_RPC_URL' })
  })
})

test('starts a preview on testnet with a database, a sponsor and a secret', async () => {
  const service = await start(preview())
  provideService(Promise.resolve(service))
  const response = await getHealth(new Request('http://localhost:3000/api/health'), undefined)
  expect(await response.json()).toEqual({ ok: true, network: 'testnet', idp: false, relay: false, sponsor: true })
  expect(service.settings.network.passphrase).toBe(Networks.TESTNET)
  await service.close()
})

describe('an RPC of another network that was unreachable at startup', () => {
  let service: RunningService
  beforeAll(async () => {
    rpc.passphrase = Networks.PUBLIC
    way.rule(() => ({ drop: true, delivered: false }))
    service = await start(preview({ STELLAR_NETWORK: 'local', STELLAR_RPC_URL: way.url, CONFIDENTIAL_TOKEN: TOKEN }))
    way.rule(null)
    rpc.methods = []
  })
  afterAll(() => service.close())

  const refusal = { code: 'unavailable', cause: { name: 'ForeignNetwork' } }

  test('is only queried for its network', async () => {
    const reading = readEntries(service.network.server, [accountKey(TOKEN, Keypair.random().publicKey())])
    await expect(reading).rejects.toMatchObject({ code: 'unavailable', cause: refusal })
    await expect(service.network.call('getHealth', {}, z.object({}))).rejects.toMatchObject(refusal)
    await expect(service.vault?.read()).rejects.toMatchObject({ code: 'unavailable' })
    expect(new Set(rpc.methods)).toEqual(new Set(['getNetwork']))
  })

  test('is queried for its network until the response is right', async () => {
    rpc.passphrase = STANDALONE
    rpc.fault = 'json-rpc-error'
    rpc.methods = []
    for (let time = 0; time < 3; time += 1) {
      await expect(service.network.call('getHealth', {}, z.object({}))).rejects.toMatchObject({ code: 'unavailable' })
    }
    // The service's own chores may also query it.
    expect(rpc.methods.filter((method) => method === 'getNetwork')).toEqual(['getNetwork'])
    expect(rpc.methods.slice(1)).toContain('getHealth')
  })
})

test('gives every function enough time, sweeps once a day, and migrates after the build (vercel.json)', () => {
  const { functions, crons, buildCommand } = JSON.parse(readFileSync('vercel.json', 'utf8')) as {
    functions: Record<string, { maxDuration: number }>
    crons: { path: string; schedule: string }[]
    buildCommand: string
  }
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const longest = readEnvironment(preview({ TRANSFER_WAIT: '50' })).TRANSFER_WAIT
  expect(readEnvironment(preview()).TRANSFER_WAIT).toBeLessThanOrEqual(longest)
  expect(functions['app/api/**/*.ts']?.maxDuration).toBeGreaterThan(longest)
  expect(crons).toEqual([{ path: '/api/cron/sweep', schedule: expect.stringMatching(/^\d+ \d+ \* \* \*$/) }])
  // A failed build must not migrate the database, because the old version is still running.
  expect(buildCommand.split(' && ')).toEqual(['npm run build', 'npm run migrate'])
  expect(scripts).toMatchObject({ build: expect.any(String), migrate: expect.any(String) })
})
