import { setImmediate } from 'node:timers/promises'
import { Account, TransactionBuilder } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import type { Ledger } from '#lib/devnet/apply/ledger.ts'
import { getEvents } from '#lib/devnet/rpc/events.ts'
import { getLedgers } from '#lib/devnet/rpc/network.ts'
import { openBareLedger, passphrase, pay, root } from './network-fixture.ts'

/** Closes ledgers until the response arrives. */
async function closeMeanwhile(ledger: Ledger, answer: Promise<object>): Promise<object> {
  let isAnswered = false
  void answer.then(() => {
    isAnswered = true
  })
  while (!isAnswered) {
    await setImmediate()
    if (!isAnswered) ledger.close()
  }
  return await answer
}

test('lets ledgers close while it reads a page of ledgers', async () => {
  const ledger = openBareLedger()
  while (ledger.history.latest().sequence < 5) ledger.close()
  const page = await closeMeanwhile(ledger, getLedgers(ledger, { startLedger: 1 }))
  expect(page).toMatchObject({ ledgers: [1, 2, 3, 4, 5].map((sequence) => ({ sequence })), latestLedger: 5 })
  expect(ledger.history.latest().sequence).toBeGreaterThan(7)
  ledger.stop()
})

test('lets ledgers close while it searches for events', async () => {
  const ledger = openBareLedger()
  const source = new Account(root.publicKey(), String(1n << 32n))
  while (ledger.history.latest().sequence < 5) {
    const builder = new TransactionBuilder(source, { fee: '100', networkPassphrase: passphrase })
    const payment = builder.addOperation(pay()).setTimeout(0).build()
    payment.sign(root)
    ledger.submit(payment.toEnvelope().toXdr('base64'))
    ledger.close()
  }
  const page = await closeMeanwhile(ledger, getEvents(ledger, { startLedger: 1 }))
  expect(page).toMatchObject({ events: Array.from({ length: 8 }, () => ({ type: 'contract' })), latestLedger: 5 })
  expect(ledger.history.latest().sequence).toBeGreaterThan(7)
  ledger.stop()
})
