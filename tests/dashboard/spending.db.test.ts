import { eq } from 'drizzle-orm'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SpendingCards } from '#app/(operator)/overview/spending-cards.tsx'
import { quotas } from '#drizzle/schema/transfers.ts'
import { identityRow, insertRows, organisationRow, transferRow } from '#lib/cli/seed/rows.ts'
import { readSpending } from '#lib/dashboard/spending.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Readiness } from '#lib/server/readiness.ts'
import { xlm } from '#lib/text/figures.ts'
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
  await pay('retired', 1000n, 2 * DAY)
})
afterAll(() => clone.drop())

test.each([
  ['old', 300n],
  ['new', 200n],
  ['retired', 0n],
  ['unused', 0n],
])('sums the fees that %s was charged in the last 24 hours', async (sponsor, spentInDay) => {
  expect((await readSpending(db, sponsor, NOW)).spentInDay).toBe(spentInDay)
  expect(await showCards(sponsor)).toContain(`${xlm(spentInDay, 4)} XLM charged in the last 24 hours`)
})

/** The text of the cards. */
async function showCards(sponsor: string): Promise<string> {
  const ready: Readiness = {
    ok: true,
    version: '1.0.0',
    database: { ok: true },
    ledger: { ok: true },
    sponsor: { ok: true, availableXlm: '1.0000000' },
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
  const organisation = organisationRow({ name: 'Northwind' })
  const identity = identityRow({ kind: 'ledger', sub: 'GA', organisation: organisation.id })
  await insertRows(db, { organisations: [organisation], identities: [identity] })
  expect(await showCards('unused')).toMatch(/Northwind9 of 500GB8 of 500/)
})
