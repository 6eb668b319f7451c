import { Account, Asset, Keypair, Operation, type Transaction, TransactionBuilder } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Refusal } from '#lib/http/refusal.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { isSequenceUsedByAnother, readSequence } from '#lib/stellar/sequence.ts'
import { accountEntry, type FakeRpc, startFakeRpc } from '../support/fake-rpc.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'

const passphrase = 'Standalone Network ; February 2017'
const keypair = (byte: number) => Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(byte))
const account = keypair(1).publicKey()

let proxy: FaultProxy
let fake: FakeRpc
let network: Network
let quiet: Network
beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase, rpcUrl: proxy.url, pollMs: 50 })
  fake = await startFakeRpc()
  quiet = openNetwork({ name: 'local', passphrase, rpcUrl: fake.url, pollMs: 50 })
})
afterAll(async () => {
  await proxy.close()
  await fake.close()
})
afterEach(() => proxy.rule(null))
beforeEach(() => {
  fake.accounts.clear()
  fake.fault = undefined
})

function pay(sequence: bigint, amount = '1', source = 1): Transaction {
  return new TransactionBuilder(new Account(keypair(source).publicKey(), String(sequence - 1n)), {
    fee: '100',
    networkPassphrase: passphrase,
    timebounds: { minTime: 0, maxTime: 0 },
  })
    .addOperation(Operation.payment({ destination: keypair(9).publicKey(), asset: Asset.native(), amount }))
    .build()
}

const hashOf = (transaction: Transaction) => Buffer.from(transaction.hash()).toString('hex')
const ours = pay(8n)
const sought = { account, sequence: 8n, hash: hashOf(ours), startLedger: 5 }

/** Pages of these envelopes, 200 at most on each. */
function serve(envelopes: string[]): unknown[] {
  const asked: unknown[] = []
  proxy.rule(({ params }) => {
    asked.push(params)
    const { cursor } = params.pagination as { cursor?: string }
    const start = Number(cursor ?? 0)
    const page = envelopes.slice(start, start + 200)
    return {
      answer: {
        transactions: page.map((envelopeXdr) => ({ envelopeXdr, status: 'SUCCESS' })),
        cursor: String(start + page.length),
      },
    }
  })
  return asked
}

describe('isSequenceUsedByAnother', () => {
  const bumped = (inner: Transaction) =>
    TransactionBuilder.buildFeeBumpTransaction(keypair(3), '200', inner, passphrase).toXdr()
  const other = pay(8n, '2')

  test.each<[string, string[], boolean]>([
    ['no transaction at all', [], false],
    ['our own', [ours.toXdr()], false],
    ['our own in a fee bump', [bumped(ours)], false],
    ['another of the number', [other.toXdr()], true],
    ['another of the number in a fee bump', [bumped(other)], true],
    ['the number before and the number after', [pay(7n, '2').toXdr(), pay(9n, '2').toXdr()], false],
    ['the number of another account', [pay(8n, '2', 2).toXdr()], false],
    ['what cannot be decoded, and then another', ['AAAA', 'nonsense', other.toXdr()], true],
  ])('%s', async (_, envelopes, used) => {
    serve(envelopes)
    expect(await isSequenceUsedByAnother(network, sought)).toBe(used)
  })

  test('is found on the third page, by the cursor of the second', async () => {
    const asked = serve([...Array(400).fill(ours.toXdr()), other.toXdr()])
    expect(await isSequenceUsedByAnother(network, sought)).toBe(true)
    expect(asked).toEqual([
      { startLedger: 5, pagination: { limit: 200 } },
      { pagination: { cursor: '200', limit: 200 } },
      { pagination: { cursor: '400', limit: 200 } },
    ])
  })

  test('an RPC whose history does not reach back says nothing', async () => {
    proxy.rule(() => ({ error: { code: -32600, message: 'start is before the oldest ledger' } }))
    await expect(isSequenceUsedByAnother(network, sought)).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('readSequence', () => {
  test('the number of the entry, and the ledger of the answer', async () => {
    fake.accounts.set(account, accountEntry(account))
    expect(await readSequence(quiet, account)).toEqual({ sequence: 1n, latestLedger: 7 })
  })

  test('no account has no number', async () => {
    expect(await readSequence(quiet, account)).toEqual({ sequence: undefined, latestLedger: 7 })
  })

  test.each(['http-503', 'json-rpc-error', 'hang-up', 'headless', 'wrong-entry'] as const)(
    '%s is no answer',
    async (fault) => {
      fake.accounts.set(account, accountEntry(account))
      fake.fault = fault
      await expect(readSequence(quiet, account)).rejects.toBeInstanceOf(Refusal)
    },
  )
})
