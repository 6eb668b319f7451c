import { afterAll, beforeAll, expect, test } from 'vitest'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { type FakeRpc, startFakeRpc } from '../support/fake-rpc.ts'

let fake: FakeRpc
beforeAll(async () => {
  fake = await startFakeRpc({ latestLedger: 41 })
  fake.closedAt = 1_777_636_800
})
afterAll(() => fake.close())

const read = () => readLatestLedger(openNetwork({ name: 'local', passphrase: '', rpcUrl: fake.url, pollMs: 50 }))

test('reads the close time from getHealth of stellar-rpc 27.1', async () => {
  fake.methods = []
  expect(await read()).toEqual({ sequence: 41, closedAt: 1_777_636_800 })
  expect(fake.methods).toEqual(['getHealth'])
})

test('reads the close time from getTransaction before stellar-rpc 27.1', async () => {
  fake.isBefore27 = true
  expect(await read()).toEqual({ sequence: 41, closedAt: 1_777_636_800 })
})

test('reads the close time from getTransaction while the network stands still, which getHealth calls an error', async () => {
  fake.isBefore27 = false
  fake.isStale = true
  expect(await read()).toEqual({ sequence: 41, closedAt: 1_777_636_800 })
  fake.isStale = false
})

test('reports the RPC as unavailable if it fails', async () => {
  fake.fault = 'json-rpc-error'
  await expect(read()).rejects.toMatchObject({ name: 'LedgerError', code: 'unavailable' })
})
