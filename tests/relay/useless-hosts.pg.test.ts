import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, expect, test } from 'vitest'
import { readEnvironment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { watchProver } from './provers.ts'
import { serveJobs } from './relay-service.ts'
import { SHORT_TIMES } from './short-times.ts'

const fixture = await serveJobs({ channels: 3 })
const proxy = await startFaultProxy(fixture.ledger.devnet.rpcUrl)
afterAll(proxy.close)

/** A host on the fixture's database whose configuration differs in these variables. */
async function startOther(variables: Record<string, string>, options: Parameters<typeof startRelay>[1] = {}) {
  const environment = readEnvironment({ ...fixture.variables, ...variables })
  const service = await startService(environment, fixture.database.shared, 0)
  const host = await startRelay(service, { times: SHORT_TIMES, ...options })
  return {
    readHealth: async () => await (await fetch(`${host.url}/health`)).json(),
    [Symbol.asyncDispose]: async () => {
      await host.close()
      await service.close()
    },
  }
}

const withoutAccounts = () => ({
  CHANNEL_SEEDS: [Keypair.random().secret(), Keypair.random().secret(), Keypair.random().secret()].join(','),
})

const stateOf = async (job: string) => (await fixture.linesOf(job)).map(({ state, channel }) => ({ state, channel }))

const UNTOUCHED = [1, 2, 3].map(() => ({ state: 'waiting', channel: null }))

test('two hosts whose channels have no account leave every line to the host that can pay', async () => {
  await using one = await startOther(withoutAccounts())
  await using _two = await startOther(withoutAccounts())
  const { client, payee, job } = await fixture.start(1, 2, 4)
  await fixture.pass(20)
  expect(await stateOf(job)).toEqual(UNTOUCHED)
  expect(await one.readHealth()).toMatchObject({
    ok: false,
    ledger: true,
    problems: ['no channel of this host can pay'],
  })
  await using _good = await fixture.relay()
  await expectJobPaidOnce(fixture, client, job, [payee, 7n])
})

test('a host without a ledger leases nothing alongside a healthy one with the same channels, and reports it', async () => {
  proxy.rule(() => ({ status: 503 }))
  await using deaf = await startOther({ STELLAR_RPC_URL: proxy.url })
  const { client, payee, job } = await fixture.start(1, 2, 4)
  const problems = [
    'the RPC does not respond: nothing is paid',
    'the channels were not compared with the ledger yet: nothing is paid',
  ]
  const unreachable = { ok: false, ledger: false, problems }
  await expect.poll(deaf.readHealth).toMatchObject(unreachable)
  await fixture.pass(20)
  expect(await stateOf(job)).toEqual(UNTOUCHED)
  {
    await using _good = await fixture.relay()
    await expectJobPaidOnce(fixture, client, job, [payee, 7n])
  }
  proxy.rule(null)
  await expect.poll(deaf.readHealth).toMatchObject({ ok: true, ledger: true, problems: [] })
  await expectJobPaidOnce(fixture, client, await fixture.begin(client, 8), [payee, 15n])
})

test('a host that loses its ledger while it proves leaves the line, which another host pays', async () => {
  const { prover, begun, release } = watchProver({ from: 1 })
  await using lost = await startOther({ STELLAR_RPC_URL: proxy.url }, { prover })
  const { client, payee, job } = await fixture.start(5)
  await begun
  const addresses = fixture.channels.map((channel) => channel.publicKey())
  expect(await stateOf(job)).toEqual([{ state: 'preparing', channel: expect.stringMatching(addresses.join('|')) }])
  proxy.rule(() => ({ status: 503 }))
  release()
  await expect.poll(async () => (await stateOf(job)).map(({ state }) => state)).toEqual(['waiting'])
  await fixture.pass(20)
  expect((await stateOf(job)).map(({ state }) => state)).toEqual(['waiting'])
  expect(await lost.readHealth()).toMatchObject({ ok: false, ledger: false })
  await using _good = await fixture.relay()
  await expectJobPaidOnce(fixture, client, job, [payee, 5n])
  proxy.rule(null)
})
