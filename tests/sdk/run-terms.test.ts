import { expect, test } from 'vitest'
import type { DeploymentWithHistory } from '#lib/sdk/own-payments.ts'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import { delegationLedgers } from '#lib/sdk/run-terms.ts'

const DAY = 86_400
const LATEST = 100_000

/** The ledgers of a delegation for some payouts, on a network that closes a ledger every five seconds. */
async function ledgersOf(payouts: number, terms: object = {}, maxLedgers?: number) {
  const relay = { marginLedgers: 120, ledgersPerPayout: 2, latestLedger: LATEST, ...terms }
  const client = createPayrollClient({ baseUrl: 'http://payroll.test/api', fetch: async () => Response.json(relay) })
  const pace = { latestLedger: LATEST, latestLedgerCloseTime: 5 * LATEST, oldestLedger: 0, oldestLedgerCloseTime: 0 }
  const deployment = { rpc: { getTransaction: async () => pace } } as unknown as DeploymentWithHistory
  return await delegationLedgers({ client, deployment, maxLedgers }, payouts)
}

test('delegates for some time beyond what the payouts take', async () => {
  expect(await ledgersOf(10)).toEqual({ leastLedgers: 80, ledgers: 1_240 })
})

test('delegates for at most a day and twice what the payouts take, although the relay is busy', async () => {
  const busy = { marginLedgers: 3_000 }
  expect((await ledgersOf(10, busy)).ledgers).toBe((DAY + 2 * 15 * 10) / 5)
  expect((await ledgersOf(10, busy, 5_000)).ledgers).toBe(5_000)
})

test.each<[string, object, number | undefined]>([
  ['that take longer than a day', { marginLedgers: 20_000 }, undefined],
  ['that take longer than the employer allows', {}, 100],
  ['that take longer than any entry lives', { ledgersPerPayout: 60_000 }, 10_000_000],
  ['of another ledger', { latestLedger: LATEST + 1_000 }, undefined],
  ['that are no numbers', { marginLedgers: 'many' }, undefined],
])('rejects terms %s', async (_, terms, maxLedgers) => {
  await expect(ledgersOf(10, terms, maxLedgers)).rejects.toMatchObject({ code: 'terms-absurd' })
})
