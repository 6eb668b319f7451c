import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makeGenesis } from '#lib/devnet/apply/genesis.ts'
import { devnetKeys } from '#lib/devnet/apply/keys.ts'
import { openLedger } from '#lib/devnet/apply/ledger.ts'
import { openProofs } from '#lib/devnet/host/proofs.ts'
import { getLedgers } from '#lib/devnet/rpc/network.ts'
import { NETWORK_LEDGER_LIMITS } from '#lib/devnet/transaction/ledger-room.ts'
import { passphrase } from './network-fixture.ts'

test('ledgers close while a page of them is told', async () => {
  const keys = devnetKeys(passphrase)
  const proofs = await openProofs('stand-in')
  const ledger = openLedger({
    limits: NETWORK_LEDGER_LIMITS,
    closeMs: 5000,
    memory: 0,
    directory: null,
    passphrase,
    verify: proofs.verify,
    now: () => 0,
    genesis: (context) => makeGenesis(context, keys, proofs.keys).entries,
  })
  while (ledger.history.latest().sequence < 5) ledger.close()
  const told = Promise.resolve(getLedgers(ledger, { startLedger: 1 }))
  let isTold = false
  void told.then(() => {
    isTold = true
  })
  while (!isTold) {
    await setImmediate()
    if (!isTold) ledger.close()
  }
  expect(await told).toMatchObject({ ledgers: [1, 2, 3, 4, 5].map((sequence) => ({ sequence })), latestLedger: 5 })
  expect(ledger.history.latest().sequence).toBeGreaterThan(7)
  ledger.stop()
})
