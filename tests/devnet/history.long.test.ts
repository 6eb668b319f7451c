import { once } from 'node:events'
import { createServer } from 'node:net'
import { Address, xdr } from '@stellar/stellar-sdk'
import { expect, onTestFinished, test } from 'vitest'
import { startDevnet } from '#lib/devnet/devnet.ts'
import { openExpiry } from '#lib/devnet/state/expiry.ts'
import { openHistory } from '#lib/devnet/state/history.ts'
import { openState, type StoredEntry } from '#lib/devnet/state/state.ts'
import { emptyRecord, keypair, openTestNetwork, passphrase } from './network-fixture.ts'

test('drops ledgers and hashes that are older than the history window', () => {
  const window = 500
  const history = openHistory(() => '', window)
  const hashOf = (sequence: number) => sequence.toString(16).padStart(64, '0')
  const extra = 10
  for (let sequence = 1; sequence <= window + extra; sequence += 1) {
    const transaction = { hash: hashOf(sequence), ok: true, isSoroban: false, inclusionFee: '100', at: [0, 0] as const }
    history.add({ ...emptyRecord(sequence), transactions: [transaction] })
  }
  expect(history.oldest().sequence).toBe(extra + 1)
  expect(history.latest().sequence).toBe(window + extra)
  expect(history.find(hashOf(extra))).toBeUndefined()
  expect(history.find(hashOf(extra + 1))?.ledger.sequence).toBe(extra + 1)
  history.forget(100)
  expect(history.oldest().sequence).toBe(100)
  expect(history.find(hashOf(99))).toBeUndefined()
})

test('removes temporary entries after their last ledger unless their lifetime was extended', () => {
  const entry = (name: string, liveUntil: number, durability = xdr.ContractDataDurability.temporary): StoredEntry => ({
    key: name,
    lastModified: 1,
    liveUntil,
    data: xdr.LedgerEntryData.contractData(
      new xdr.ContractDataEntry({
        ext: xdr.ExtensionPoint.v0(),
        contract: Address.fromString(keypair('holder').publicKey()).toScAddress(),
        key: xdr.ScVal.scvSymbol(name),
        durability,
        val: xdr.ScVal.scvVoid(),
      }),
    ),
  })
  const entries = [
    entry('short', 5),
    entry('long', 9),
    entry('extended', 5),
    entry('persistent', 5, xdr.ContractDataDurability.persistent),
  ]
  const state = openState(entries)
  const expiry = openExpiry()
  for (const each of entries) expiry.note(each)
  const layer = state.fork()
  layer.put(entry('extended', 8))
  expiry.follow(layer.changes())
  layer.commit()
  const left = (sequence: number) => {
    expiry.evict(state, sequence)
    return ['short', 'long', 'extended', 'persistent'].filter((name) => state.get(name))
  }
  expect(left(5)).toEqual(['short', 'long', 'extended', 'persistent'])
  expect(left(6)).toEqual(['long', 'extended', 'persistent'])
  expect(left(9)).toEqual(['long', 'persistent'])
  expect(left(10)).toEqual(['persistent'])
})

test('closes ledgers at whole seconds that never decrease', async () => {
  const network = await openTestNetwork()
  const times: number[] = []
  for (const step of [400, 400, 400, -60_000, 1000, 90_000]) {
    network.clock.now += step
    network.devnet.closeLedger()
    const { ledgers } = await network.server.getLedgers({ startLedger: times.length + 2 })
    times.push(Number(ledgers[0]?.ledgerCloseTime))
  }
  expect(times).toEqual(times.toSorted((left, right) => left - right))
  expect(times.every(Number.isInteger)).toBe(true)
  expect(new Set(times).size).toBe(3)
  await network.stop()
})

test.each([
  [31, '31s'],
  [65, '1m5s'],
  [3_600, '1h0m0s'],
])('reports that the last ledger is %d seconds old', async (seconds, duration) => {
  const network = await openTestNetwork()
  onTestFinished(network.stop)
  network.clock.now += seconds * 1_000
  await expect(network.server.getHealth()).rejects.toMatchObject({
    code: -32603,
    message: `latency (${duration}) since last known ledger closed is too high (>30s)`,
  })
})

test('names a port that is in use and releases the directory', async () => {
  const network = await openTestNetwork()
  const port = Number(new URL(network.devnet.url).port)
  await expect(openTestNetwork({ port })).rejects.toThrow(`port ${port} (DEVNET_PORT)`)
  await network.stop()
  const again = await openTestNetwork({ port })
  await again.stop()
})

test('responds to a request that arrives while the ledger opens', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as { port: number }
  holder.close()
  await once(holder, 'close')
  const starting = startDevnet({ directory: null, port, closeMs: 0, passphrase, proofs: 'real' })
  const ask = async (): Promise<number> => {
    try {
      return (await fetch(`http://localhost:${port}/deployment.json`)).status
    } catch {
      return await ask()
    }
  }
  expect(await ask()).toBe(200)
  await (await starting).close()
})
