import { Keypair, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { readEnvironment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { type CountingGate, startCountingGate } from '../bench/counting-gate.ts'
import { type Call, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

vi.setConfig({ testTimeout: 300_000 })

const CHANNELS = 6
/** Milliseconds; a slower machine asks less in them. */
const WINDOW = 4_000

let fixture: RelayService
let gate: CountingGate
let proxy: FaultProxy
beforeAll(async () => {
  fixture = await openRelayService({ channels: CHANNELS })
  proxy = await startFaultProxy(fixture.ledger.devnet.rpcUrl)
  if (inject('postgres')) gate = await startCountingGate(fixture.database.url)
})
afterAll(async () => {
  await gate?.close()
  await proxy?.close()
  await fixture?.close()
})

/** The accounts that a question to the RPC names, of those given. */
function named({ method, params }: Call, addresses: readonly string[]): string[] {
  if (method !== 'getLedgerEntries') return addresses.filter((address) => JSON.stringify(params).includes(address))
  const keys = (params.keys as string[]).map((key) => xdr.LedgerKey.fromXdr(key, 'base64').toXdr('hex'))
  return addresses.filter((address) => {
    const raw = Buffer.from(Keypair.fromPublicKey(address).rawPublicKey()).toString('hex')
    return keys.some((key) => key.includes(raw))
  })
}

// The statements are counted on the way to PostgreSQL.
test.runIf(inject('postgres'))('idle channels ask neither ledger nor database beside one item', async () => {
  const variables = { ...fixture.variables, DATABASE_URL: gate.url, STELLAR_RPC_URL: proxy.url }
  const service = await startService(readEnvironment(variables), undefined, 0)
  const relay = await startRelay(service)
  try {
    const client = await fixture.client()
    const payee = await fixture.payee()
    await fixture.hire(client, [payee.signer.publicKey()])
    const pay = async (...amounts: number[]) => {
      const { jobId } = (await fixture.post(client, { amounts })).body as { jobId: string }
      expect(await fixture.ended(client, jobId)).toMatchObject({ status: 'completed' })
      const items = await fixture.db.query.batchItems.findMany({ where: (item, { eq }) => eq(item.job, jobId) })
      return items.map(({ channel }) => channel)
    }
    // Each channel's balance is read from the ledger's events once.
    await pay(...Array.from({ length: CHANNELS }, () => 1))
    const addresses = fixture.channels.map((channel) => channel.publicKey())
    const asked = new Set<string>()
    let chores = 0
    proxy.rule((call) => {
      const found = named(call, addresses)
      // The chore asks for all channels together, every 20 seconds.
      if (found.length === CHANNELS) chores += 1
      else for (const address of found) asked.add(address)
      return 'pass'
    })
    const [paying] = await pay(1)
    expect([...asked]).toEqual([paying])
    gate.reset()
    const before = [...proxy.calls.values()].reduce((sum, count) => sum + count, 0)
    await new Promise((resolve) => setTimeout(resolve, WINDOW))
    const calls = [...proxy.calls.values()].reduce((sum, count) => sum + count, 0) - before
    expect(calls).toBeLessThanOrEqual(2 * (chores + 1))
    expect(gate.count()).toBeLessThanOrEqual((20 * WINDOW) / 1_000)
  } finally {
    await relay.close()
    await service.close()
  }
})
