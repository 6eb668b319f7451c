import { fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Asset, Operation, rpc } from '@stellar/stellar-sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DirectoryInUse } from '#lib/config/data-directory.ts'
import { openJournal } from '#lib/devnet/state/journal.ts'
import { emptyRecord, keypair, openTestNetwork } from './network-fixture.ts'

const payer = keypair('payer')
const payee = keypair('payee')
const pay = () => Operation.payment({ destination: payee.publicKey(), asset: Asset.native(), amount: '1' })

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'devnet-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** A network as a client can see it. */
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

test('a restart keeps everything, and the chain goes on', async () => {
  const before = await openTestNetwork({ directory })
  await before.found(payer, payee)
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

test('a torn last record is cut away', async () => {
  const before = await openTestNetwork({ directory })
  await before.found(payer, payee)
  const seen = await view(before.server)
  await before.stop()
  const journal = (await readdir(directory)).find((name) => name.endsWith('.journal')) ?? ''
  const { size } = await stat(join(directory, journal))
  await appendFile(join(directory, journal), Buffer.from('00000900000000ff12345678aa', 'hex'))

  const after = await openTestNetwork({ directory })
  expect(await view(after.server)).toEqual(seen)
  expect((await stat(join(directory, journal))).size).toBe(size)
  await after.settle(await after.build(payer, pay()))
  const more = await view(after.server)
  await after.stop()
  const again = await openTestNetwork({ directory })
  expect(await view(again.server)).toEqual(more)
  await again.stop()
})

test('the remains of a failed write do not damage a finished segment', async () => {
  const headOf = (sequence: number) => ({ ledger: emptyRecord(sequence), changes: [] })
  const journal = openJournal(directory, () => {})
  journal.append(headOf(1), Buffer.alloc(0))
  // A full disk takes a part of a record.
  await appendFile(join(directory, 'ledgers-0000000001.journal'), Buffer.alloc(4_096, 1))
  journal.append(headOf(2), Buffer.alloc(0))
  journal.roll(3)
  journal.append(headOf(3), Buffer.alloc(0))
  journal.close()

  const replayed: number[] = []
  openJournal(directory, ({ ledger }) => replayed.push(ledger.sequence)).close()
  expect(replayed).toEqual([1, 2, 3])
})

test('after a thousand ledgers a snapshot stands behind the journal', async () => {
  const before = await openTestNetwork({ directory })
  const bystander = keypair('bystander')
  await before.found(payer, payee, bystander)
  await before.settle(await before.build(payer, pay()))
  for (let ledger = 0; ledger < 1100; ledger += 1) before.close()
  await before.settle(await before.build(payer, pay()))
  const seen = await view(before.server)
  await before.stop()
  const names = (await readdir(directory)).filter((name) => /journal|snapshot/.test(name))
  expect(names.toSorted()).toEqual([
    'entries-0000001024.snapshot',
    'ledgers-0000000001.journal',
    'ledgers-0000001025.journal',
  ])
  const after = await openTestNetwork({ directory })
  expect(await view(after.server)).toEqual(seen)
  // An account that nothing has touched since is in the snapshot alone.
  expect(await after.account(bystander)).toMatchObject({ balance: 100_0000000n })
  await after.stop()
})

test('a directory serves one network and one process', async () => {
  const first = await openTestNetwork({ directory })
  await expect(openTestNetwork({ directory })).rejects.toThrow(DirectoryInUse)
  await first.stop()
  await expect(openTestNetwork({ directory, passphrase: 'Another Network' })).rejects.toThrow(directory)
  const again = await openTestNetwork({ directory })
  await again.stop()
})

test('SIGKILL loses nothing that was answered for', async () => {
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
  const kept = await view(second.server)
  expect(kept.transactions).toEqual(seen.transactions)
  expect(kept.accounts).toEqual(seen.accounts)
  expect(kept.ledgers.slice(0, seen.ledgers.length)).toEqual(seen.ledgers)
  await second.server.requestAirdrop(keypair('after the crash').publicKey())
  second.child.kill('SIGKILL')
  await once(second.child, 'exit')
})
