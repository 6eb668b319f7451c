import { rpc } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EventReference } from '#lib/disclosure/bundle.ts'
import { openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import { readAuditorKey } from '#lib/wallet/account.ts'
import { startTestLedger, type TestLedger } from '../support/test-ledger.ts'

let ledger: TestLedger
let place: EventReference

beforeAll(async () => {
  ledger = await startTestLedger()
  const { network } = ledger
  await ledger.endowPayer(0n)
  const { sequence } = await network.rpc.getLatestLedger()
  const filters = [{ type: 'contract' as const, contractIds: [network.token] }]
  const { events } = await network.rpc.getEvents({ filters, startLedger: Math.max(1, sequence - 50) })
  const event = events.at(-1)
  if (!event) throw new Error('the registration emitted no event')
  place = { transaction: event.txHash, eventIndex: Number(event.id.split('-')[1]) }
})
afterAll(() => ledger.close())

test('treats an event of a call that was rolled back as absent', async () => {
  const source = openLedgerSource(new rpc.Server(ledger.url, { allowHttp: true }), ledger.network.token)
  await expect(source.findEvent(place)).resolves.toMatchObject(place)
  const rollBack = (result: Record<string, unknown>) => ({
    ...result,
    events: (result.events as object[]).map((event) => ({ ...event, inSuccessfulContractCall: false })),
  })
  ledger.proxy.rule(({ method }) => (method === 'getEvents' ? { rewrite: rollBack } : 'pass'))
  await expect(source.findEvent(place)).rejects.toMatchObject({ code: 'event-not-found' })
  ledger.proxy.rule(null)
})

test('finds the auditor’s key on a young ledger without an archive', async () => {
  const { network } = ledger
  const source = openLedgerSource(network.rpc, network.token)
  const event = await source.findEvent(place)
  expect(event.ledger).toBeLessThan(100)
  await expect(source.findAuditorKeys(0, [event])).resolves.toEqual([await readAuditorKey(network, 0)])
})
