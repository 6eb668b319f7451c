import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { getLedgers } from '#lib/devnet/rpc/network.ts'
import { openBareLedger } from './network-fixture.ts'

test('ledgers close while a page of them is told', async () => {
  const ledger = openBareLedger()
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
