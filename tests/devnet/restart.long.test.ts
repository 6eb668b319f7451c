import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Asset, Operation, rpc } from '@stellar/stellar-sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DirectoryInUse, OtherVersion } from '#lib/config/data-directory.ts'
import { openDatabase } from '#lib/devnet/state/database.ts'
import { emptyRecord, keypair, openTestNetwork } from './network-fixture.ts'

const payer = keypair('payer')
const payee = keypair('payee')
const pay = () => Operation.payment({ destination: payee.publicKey(), asset: Asset.native(), amount: '1' })

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'devnet-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** A network as clients see it. */
async function view(server: rpc.Server) {
  const { ledgers } = await server.getLedgers({ startLedger: 1 })
  const { transactions } = await server.getTransactions({ startLedger: 1 })
  const { events } = await server.getEvents({ startLedger: 1, filters: [] })
  const accounts = await Promise.all([payer, payee].map((account) => server.getAccountEntry(account.publicKey())))
  return {
    ledgers: ledgers.map(({ hash }) => hash),
    transactions: transactions.map(({ txHash, resultMetaXdr }) => [txHash, resultMetaXdr.toXdr('base64')]),
    events: events.map(({ id }) => id),
    accounts: accounts.map((account) => account.toXdr('base64')),
  }
}

test('keeps everything across a restart and continues the chain', async () => {
  const before = await openTestNetwork({ directory })
  await before.createAccounts(payer, payee)
  await before.settle(await before.build(payer, pay()))
  const seen = await view(before.server)
  await before.stop()

  const after = await openTestNetwork({ directory })
  expect(await view(after.server)).toEqual(seen)
  expect(after.devnet.deployment.contracts).toEqual(before.devnet.deployment.contracts)
  const outcome = await after.settle(await after.build(payer, pay()))
  expect(outcome).toMatchObject({ status: 'SUCCESS', ledger: seen.ledgers.length + 1 })
  await after.stop()
})

test('closes a ledger only once it is stored', async () => {
  const network = await openTestNetwork({ directory })
  await network.createAccounts(payer, payee)
  const seen = await view(network.server)
  const payment = await network.build(payer, pay())
  await network.send(payment)
  const writer = new DatabaseSync(join(directory, 'ledger.sqlite'))
  writer.exec('BEGIN IMMEDIATE')
  expect(() => network.close()).toThrow('database is locked')
  expect(await view(network.server)).toEqual(seen)
  writer.exec('ROLLBACK')
  writer.close()
  network.close()
  expect(await network.find(payment)).toMatchObject({ status: 'SUCCESS', ledger: seen.ledgers.length + 1 })
  const more = await view(network.server)
  await network.stop()
  const again = await openTestNetwork({ directory })
  expect(await view(again.server)).toEqual(more)
  await again.stop()
})

test('keeps entries across a restart that only a deleted ledger changed, and applies a shorter window', async () => {
  const bystander = keypair('bystander')
  const before = await openTestNetwork({ directory, historyLedgers: 20 })
  await before.createAccounts(payer, payee, bystander)
  for (let ledger = 0; ledger < 30; ledger += 1) before.close()
  expect(await before.server.getHealth()).toMatchObject({
    latestLedger: 32,
    oldestLedger: 13,
    ledgerRetentionWindow: 20,
  })
  await before.stop()
  const after = await openTestNetwork({ directory, historyLedgers: 5 })
  expect(await after.server.getHealth()).toMatchObject({ latestLedger: 32, oldestLedger: 28 })
  after.close()
  expect(await after.server.getHealth()).toMatchObject({ latestLedger: 33, oldestLedger: 29 })
  expect(await after.account(bystander)).toMatchObject({ balance: 100_0000000n })
  await after.stop()
})

test('deletes the oldest ledgers beyond the size limit, but never the latest', () => {
  const database = openDatabase(null, 1_000)
  const append = (sequence: number, bytes: number) =>
    database.append(emptyRecord(sequence), new Uint8Array(bytes), [], sequence - 99)
  expect([append(1, 400), append(2, 400), append(3, 400), append(4, 5_000), append(5, 100)]).toEqual([1, 1, 2, 4, 5])
  expect(database.ledgers().map(({ sequence }) => sequence)).toEqual([5])
  database.close()
})

test.each<[string, RegExp, (network: Record<string, unknown>) => void]>([
  ['written before release 1.0.0', /older than release 1\.0\.0/, (network) => delete network.version],
  ['of a development version', /older than release 1\.0\.0/, (network) => Object.assign(network, { version: '0a' })],
  ['of a newer version', /start that version/, (network) => Object.assign(network, { version: 1_000 })],
])('refuses a directory %s, and leaves it as it is', async (_name, advice, change) => {
  await (await openTestNetwork({ directory })).stop()
  const path = join(directory, 'network.json')
  const network = JSON.parse(await readFile(path, 'utf8'))
  change(network)
  await writeFile(path, JSON.stringify(network))
  const before = await readFile(join(directory, 'ledger.sqlite'))
  const refused = openTestNetwork({ directory })
  await expect(refused).rejects.toThrow(OtherVersion)
  await expect(refused).rejects.toThrow(advice)
  expect(await readFile(join(directory, 'ledger.sqlite'))).toEqual(before)
  await writeFile(path, JSON.stringify({ ...network, passphrase: 'Another Network' }))
  await expect(openTestNetwork({ directory })).rejects.toThrow('DEVNET_PASSPHRASE')
})

test('opens a directory for one network and one process', async () => {
  const first = await openTestNetwork({ directory })
  await expect(openTestNetwork({ directory })).rejects.toThrow(DirectoryInUse)
  await first.stop()
  await expect(openTestNetwork({ directory, passphrase: 'Another Network' })).rejects.toThrow(directory)
  const again = await openTestNetwork({ directory })
  await again.stop()
})

test('keeps every reported ledger through a SIGKILL', async () => {
  const start = async () => {
    const child = fork(new URL('./devnet-process.ts', import.meta.url), [directory], { stdio: 'inherit' })
    const [rpcUrl] = await once(child, 'message')
    return { child, server: new rpc.Server(String(rpcUrl), { allowHttp: true }) }
  }
  const first = await start()
  for (const account of [payer, payee]) await first.server.requestAirdrop(account.publicKey())
  const seen = await view(first.server)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')

  const second = await start()
  const after = await view(second.server)
  expect(after.transactions).toEqual(seen.transactions)
  expect(after.accounts).toEqual(seen.accounts)
  expect(after.ledgers.slice(0, seen.ledgers.length)).toEqual(seen.ledgers)
  await second.server.requestAirdrop(keypair('after the crash').publicKey())
  second.child.kill('SIGKILL')
  await once(second.child, 'exit')
})
