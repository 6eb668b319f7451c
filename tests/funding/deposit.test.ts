import { xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lookAtDeposit } from '#lib/funding/deposit.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { errorEvent, plainResult } from '../sponsor/ledger-answers.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'

const deposit = { hash: '11'.repeat(32), maxTime: 1000, sinceLedger: 5 }

let proxy: FaultProxy
let network: Network
beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: 'any', rpcUrl: proxy.url, pollMs: 50 })
})
afterAll(() => proxy.close())

const unknown = (latestLedgerCloseTime: number, oldestLedger: number) => ({
  status: 'NOT_FOUND',
  latestLedger: 9,
  latestLedgerCloseTime: String(latestLedgerCloseTime),
  oldestLedger,
})
const found = (status: string, outcome: Parameters<typeof plainResult>[0], more = {}) => ({
  status,
  latestLedger: 9,
  ledger: 8,
  resultXdr: plainResult(outcome),
  ...more,
})

test.each<[string, Record<string, unknown>, unknown]>([
  ['not there, in its last second', unknown(1000, 5), { ended: undefined, latestLedger: 9 }],
  ['not there, and the last ledger closed after its time', unknown(1001, 5), { ended: { status: 'returned' } }],
  ['not there, but the history begins after the signing', unknown(1001, 6), { ended: { status: 'lost' } }],
  ['there', found('SUCCESS', 'success'), { ended: { status: 'granted', resultCode: 'txSuccess' } }],
  [
    'there, and failed',
    found('FAILED', 'trapped', { diagnosticEventsXdr: [errorEvent(xdr.ScError.sceContract(3501))] }),
    { ended: { status: 'returned', resultCode: 'txFailed', contractError: 3501 } },
  ],
])('%s', async (_, answer, look) => {
  proxy.rule(() => ({ answer }))
  expect(await lookAtDeposit(network, deposit)).toEqual(look)
})

test.each<[string, Record<string, unknown>]>([
  ['a success whose result is a failure', found('SUCCESS', 'trapped')],
  ['a failure whose result is a success', found('FAILED', 'success')],
  ['a result that cannot be read', found('SUCCESS', 'success', { resultXdr: 'AAAA' })],
])('%s is no answer', async (_, answer) => {
  proxy.rule(() => ({ answer }))
  await expect(lookAtDeposit(network, deposit)).rejects.toMatchObject({ code: 'unavailable' })
})
