import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Refusal } from '#lib/http/refusal.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { readSequence } from '#lib/stellar/sequence.ts'
import { accountEntry, type FakeRpc, startFakeRpc } from '../support/fake-rpc.ts'

const passphrase = 'Standalone Network ; February 2017'
const account = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(1)).publicKey()

let fake: FakeRpc
let quiet: Network
beforeAll(async () => {
  fake = await startFakeRpc()
  quiet = openNetwork({ name: 'local', passphrase, rpcUrl: fake.url, pollMs: 50 })
})
afterAll(() => fake.close())
beforeEach(() => {
  fake.accounts.clear()
  fake.fault = undefined
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
