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

test('getHealth of stellar-rpc 27.1 has the close time', async () => {
  fake.asked = []
  expect(await read()).toEqual({ sequence: 41, closedAt: 1_777_636_800 })
  expect(fake.asked).toEqual(['getHealth'])
})

test('getTransaction has it where getHealth does not, before stellar-rpc 27.1', async () => {
  fake.isBefore27 = true
  expect(await read()).toEqual({ sequence: 41, closedAt: 1_777_636_800 })
})

test('leaves the latest ledger unknown if the RPC fails', async () => {
  fake.fault = 'json-rpc-error'
  await expect(read()).rejects.toMatchObject({ name: 'LedgerError', code: 'unavailable' })
})
