import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readLedgerHead } from '#lib/archive/source.ts'
import { readHistory } from '#lib/disclosure/history.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { readPace } from '#lib/wallet/escrow.ts'
import { type Payer, startTestLedger, type TestLedger } from '../support/test-ledger.ts'

// A ledger whose headers stellar-sdk 17.2 cannot decode (CAP-88).

let ledger: TestLedger
let payer: Payer
beforeAll(async () => {
  ledger = await startTestLedger({ closeMs: 50, protocol: 30, historyLedgers: 100 })
  payer = await ledger.endowPayer(7n)
})
afterAll(() => ledger.close())

async function call(method: string, params: object = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(ledger.devnet.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  return (await response.json()).result
}

test('has headers that the SDK cannot decode, whose hashes are those of their bytes', async () => {
  const { rpc } = ledger.network
  expect((await rpc.getNetwork()).protocolVersion).toBe(30)
  await expect(rpc.getLatestLedger()).rejects.toThrow('unknown')
  const { ledgers, latestLedger } = await call('getLedgers', { startLedger: 2, pagination: { limit: 2 } })
  expect(latestLedger).toBeGreaterThan(2)
  const [first, second] = ledgers.map(({ headerXdr }: { headerXdr: string }) => Buffer.from(headerXdr, 'base64'))
  // A history entry is the hash, the header, and an extension of four bytes.
  const hashOf = (entry: Buffer) => createHash('sha256').update(entry.subarray(32, -4)).digest('hex')
  expect([hashOf(first), hashOf(second)]).toEqual([ledgers[0].hash, ledgers[1].hash])
  expect(second.readUInt32BE(32)).toBe(30)
  expect(second.subarray(36, 68).toString('hex')).toBe(ledgers[0].hash)
  expect(Buffer.from(ledgers[0].metadataXdr, 'base64').includes(first.subarray(32, -4))).toBe(true)
})

test('serves the wallet, its history after it was cut, and the archive, none of which reads a header', async () => {
  const { network } = ledger
  expect((await syncBalance(network, payer)).spendable.value).toBe(7n)
  const { latestLedger } = await readPace(network)
  await expect.poll(async () => (await network.rpc.getHealth()).oldestLedger, { interval: 100 }).toBeGreaterThan(20)
  const history = await readHistory({ rpc: network.rpc, token: network.token, archives: [] }, payer.address)
  expect(Date.parse(history.completeFrom ?? '')).toBeGreaterThan(0)
  expect(history.through.ledger).toBeGreaterThanOrEqual(latestLedger)
  const rpcUrl = ledger.devnet.rpcUrl
  const service = openNetwork({ name: 'local', passphrase: network.passphrase, rpcUrl, pollMs: 50 })
  const { sequence } = await readLatestLedger(service)
  expect(await readLedgerHead(service, sequence)).toMatchObject({
    sequence,
    hash: expect.stringMatching(/^[\da-f]{64}$/),
  })
})
