import { createHash } from 'node:crypto'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { diagnose } from '#lib/relay/check.ts'
import { openAccounts, readAccount } from '#lib/stellar/account.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { accountEntry, type FakeRpc, type RpcFault, startFakeRpc } from '../support/fake-rpc.ts'

const addressOf = (name: string) => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest()).publicKey()
const [alice, bob, nobody] = [addressOf('alice'), addressOf('bob'), addressOf('nobody')]
let fake: FakeRpc

beforeAll(async () => {
  fake = await startFakeRpc()
})
afterAll(() => fake.close())
beforeEach(() => {
  fake.fault = undefined
  fake.accounts.clear()
  fake.accounts.set(alice, accountEntry(alice, { sequence: 7n }))
  fake.accounts.set(bob, accountEntry(bob, { sequence: 8n }))
})

const network = () => ({
  ...openNetwork({ name: 'local', passphrase: 'a test network', rpcUrl: fake.url, pollMs: 50 }),
  server: fake.server,
})

test('makes one request for concurrent reads', async () => {
  const read = openAccounts(network())
  const before = fake.calls
  const readings = await Promise.all([alice, bob, nobody, alice].map(read))
  expect(fake.calls - before).toBe(1)
  expect(readings.map(({ account }) => account?.seqNum)).toEqual([7n, 8n, undefined, 7n])
})

test('reads the entries of separate callers in one request, up to 200', async () => {
  const { server } = network()
  const before = fake.calls
  const [first, second] = await Promise.all([alice, bob].map((address) => readAccount(server, address)))
  expect(fake.calls - before).toBe(1)
  expect([first?.account?.seqNum, second?.account?.seqNum]).toEqual([7n, 8n])
  const others = Array.from({ length: 200 }, (_, index) => addressOf(`${index}`))
  const last = await Promise.all([...others, alice].map((address) => readAccount(server, address)))
  expect(fake.calls - before).toBe(3)
  expect(last.at(-1)?.account?.seqNum).toBe(7n)
})

test('makes one more request for reads that follow shortly after one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  try {
    const read = openAccounts(network())
    const first = read(alice)
    await vi.advanceTimersByTimeAsync(5)
    await first
    const before = fake.calls
    const later: ReturnType<typeof read>[] = []
    for (const address of [bob, nobody, alice]) {
      later.push(read(address))
      await vi.advanceTimersByTimeAsync(20)
    }
    expect(fake.calls - before).toBe(0)
    await vi.advanceTimersByTimeAsync(100)
    expect((await Promise.all(later)).map(({ account }) => account?.seqNum)).toEqual([8n, undefined, 7n])
    expect(fake.calls - before).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

const faults: RpcFault[] = ['http-503', 'json-rpc-error', 'hang-up', 'headless', 'wrong-entry', 'wrong-type']
test.each(faults)('treats %s as unavailable, not as a missing account', async (fault) => {
  fake.fault = fault
  await expect(openAccounts(network())(alice)).rejects.toMatchObject({ code: 'unavailable' })
  await expect(readAccount(network().server, alice)).rejects.toMatchObject({ code: 'unavailable' })
  const token = StrKey.encodeContract(new Uint8Array(32))
  const sponsor = { tracker: { readAccount: openAccounts(network()) } }
  await expect(diagnose({ network: network(), token, sponsor }, alice)).rejects.toMatchObject({ code: 'unavailable' })
})
