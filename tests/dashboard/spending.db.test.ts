import { eq } from 'drizzle-orm'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SpendingCards } from '#app/(operator)/overview/spending-cards.tsx'
import { quotas } from '#drizzle/schema/transfers.ts'
import { insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { readSpending } from '#lib/dashboard/spending.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Readiness } from '#lib/server/readiness.ts'
import { EVERYBODY, quotaDay } from '#lib/transfers/quota.ts'
import { cloneDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const DAY = 86_400

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database

/** Records a transfer for which `sponsor` paid `fee` stroops that many seconds ago. */
async function pay(sponsor: string, fee: bigint, seconds: number): Promise<void> {
  const createdAt = new Date(NOW.getTime() - seconds * 1000)
  await insertRows(db, { transfers: [transferRow({ status: 'succeeded', sponsor, feeCharged: fee, createdAt })] })
}

beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
  await pay('old', 1000n, 30 * DAY)
  await pay('old', 300n, DAY - 1)
  await pay('old', 500n, DAY + 1)
  await pay('new', 100n, 7200)
  await pay('new', 100n, 60)
  await pay('newest', 100n, 1)
  await pay('retired', 1000n, 2 * DAY)
})
afterAll(() => clone.drop())

test.each([
  ['has paid for a long time, over the last 24 hours', 'old', 300n],
  ['has paid for two hours, over these two hours', 'new', 2400n],
  ['has just started, over one hour', 'newest', 2400n],
  ['has paid nothing recently', 'retired', 0n],
  ['never paid', 'unused', 0n],
])('computes the rate of a sponsor that %s', async (_, sponsor, perDay) => {
  expect((await readSpending(db, sponsor, NOW)).perDay).toBe(perDay)
})

test.each([
  ['old', '0.0000900', 'Lasts about 3 days at 0.00003 XLM a day'],
  ['new', '0.0024000', 'Lasts about 10 days at 0.0002 XLM a day'],
  ['new', '0.0003000', 'Lasts about a day at'],
  ['new', '0.0001000', 'Lasts less than a day at'],
  ['new', '99.0000000', 'Lasts more than 10 years at'],
  ['retired', '0.0000900', 'No fees in the last 24 hours'],
])('computes the days left for %s with %s XLM', async (sponsor, availableXlm, words) => {
  expect(await showCards(sponsor, availableXlm)).toContain(words)
})

/** The text of the cards. */
async function showCards(sponsor: string, availableXlm = '1.0000000'): Promise<string> {
  const ready: Readiness = {
    ok: true,
    database: { ok: true },
    ledger: { ok: true },
    sponsor: { ok: true, availableXlm },
    relay: { ok: true, configured: false },
    archive: { ok: true, configured: false },
  }
  const spending = await readSpending(db, sponsor, NOW)
  const limits = { transfersPerAccount: 500, stroopsPerAccount: 1n, dailyBudget: 1n, callsBudget: 1n }
  const html = renderToStaticMarkup(
    createElement(SpendingCards, { spending, vault: 'none', ready, limits, network: 'local' }),
  )
  return html.replace(/<[^>]+>/g, '')
}

test('shows the day’s accounts, which add up to all of its transfers', async () => {
  const day = quotaDay(NOW)
  const used = (account: string, count: number) => ({ account, day, count, used: BigInt(count) })
  await db.insert(quotas).values([used('GA', 9), used('GB', 8), used('GC', 7)])
  await db.insert(quotas).values(used(EVERYBODY, 24))
  expect(await showCards('unused')).toMatch(/24 transfers today.*GA9 of 500GB8 of 500GC7 of 500Vault/)
  await db.insert(quotas).values([used('GD', 2), used('GE', 1)])
  await db.update(quotas).set({ count: 27 }).where(eq(quotas.account, EVERYBODY))
  expect(await showCards('unused')).toMatch(/27 transfers today.*GA9 of 500GB8 of 500GC7 of 500Other accounts 3/)
})
