import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol, openTestNetwork, sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import { startTestLedger, type TestLedger } from '../support/test-ledger.ts'

// Behind one address, one of two nodes is two ledgers behind: half of a client's reads do not show what it has just done.

let ledger: TestLedger
let network: TestNetwork
beforeAll(async () => {
  ledger = await startTestLedger({ closeMs: 200, lag: [0, 2] })
  // Directly, and not through the ledger's proxy.
  network = await openTestNetwork(`${ledger.devnet.url}/deployment.json`)
})
afterAll(() => ledger.close())

test('creates, registers and reads accounts, one after another', async () => {
  for (let account = 1; account <= 4; account += 1) {
    const holder = await enrol(network, Keypair.random())
    expect((await syncBalance(network, holder)).spendable.value).toBe(0n)
    await sendAndWait(network, (await buildMerge(network, holder.signer)).signedXdr)
    expect((await syncBalance(network, holder)).receiving.value).toBe(0n)
  }
})
