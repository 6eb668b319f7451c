import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { organisations } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import {
  batchRow,
  contractorRow,
  identityRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import { findOrganisationLine } from '#lib/dashboard/organisations.ts'
import { moveWindows } from '#lib/dashboard/windows.ts'
import type { Database } from '#lib/db/connection.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const before = (days: number) => new Date(NOW.getTime() - days * 86_400_000)

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await cloneDatabase()
  db = await database.store.database()
})
afterAll(() => database?.drop())

/** Adds an organisation with a user and with contractors that were last paid that many days ago. */
async function found(name: string, contractors: { paid: number; isRemoved?: boolean }[]) {
  const organisation = organisationRow({ name })
  const rows = contractors.map(({ paid, isRemoved = false }) =>
    contractorRow({ organisation: organisation.id, lastPaidAt: before(paid), deletedAt: isRemoved ? NOW : null }),
  )
  const identity = identityRow({ kind: 'ledger', sub: `G${name}`, organisation: organisation.id })
  await insertRows(db, { organisations: [organisation], identities: [identity], contractors: rows })
  return { organisation: organisation.id, userSub: identity.sub, contractor: rows[0]?.id ?? '' }
}

const lastPaidAt = async (organisation: string) => (await findOrganisationLine(db, organisation, NOW))?.lastPaidAt

test('shows when an organisation paid a contractor, including removed ones', async () => {
  const { organisation } = await found('Northwind', [{ paid: 3 }, { paid: 5 }, { paid: 2, isRemoved: true }])
  expect(await lastPaidAt(organisation)).toEqual(before(2))
  const { organisation: other } = await found('Contoso', [{ paid: 4, isRemoved: true }])
  expect(await lastPaidAt(other)).toEqual(before(4))
})

test('reads the lines of jobs, but not of runs, whose payments are those of contractors', async () => {
  const { organisation, userSub, contractor } = await found('Fabrikam', [{ paid: 3 }])
  const batch = batchRow({ organisation })
  const payout = payoutRow({ organisation, batch: batch.id, contractor, status: 'paid' })
  const run = jobRow({
    ...{ userKind: 'ledger', userSub, status: 'completed' },
    ...{ batch: batch.id, manifest: 'm', signature: 's', quotaDay: '2026-11-20' },
  })
  const paid = { outcome: 'paid', queuedAt: before(1) } as const
  const items = [itemRow({ ...paid, job: run.id, payout: payout.id, spender: 'G' })]
  await insertRows(db, { batches: [batch], payouts: [payout], jobs: [run], items })
  expect(await lastPaidAt(organisation)).toEqual(before(3))
  const job = jobRow({ userKind: 'ledger', userSub, status: 'completed' })
  await insertRows(db, { jobs: [job], items: [itemRow({ ...paid, job: job.id })] })
  expect(await lastPaidAt(organisation)).toEqual(before(1))
})

const hoursAgo = (hours: number) => new Date(NOW.getTime() - hours * 3_600_000)
const costsOf = async (organisation: string) => (await findOrganisationLine(db, organisation, NOW))?.costs

test('shows the fees of a person’s transfers, and of those by which relays have paid its jobs', async () => {
  const { organisation } = await found('Adatum', [])
  const users = [{ sub: 'adatum', organisation }, { sub: 'stranger' }]
  const jobs = users.map(({ sub: userSub }) => jobRow({ userSub, status: 'completed' }))
  const ended = { createdAt: NOW, sponsor: 'S', feeCharged: 10n, status: 'succeeded' } as const
  await insertRows(db, {
    identities: users.map((user) => identityRow({ kind: 'idp', ...user })),
    jobs,
    items: jobs.map(({ id: job }) => itemRow({ job, outcome: 'paid' })),
    transfers: [
      transferRow({ ...ended, organisation }),
      transferRow({ ...ended, organisation, status: 'failed' }),
      transferRow({ ...ended, organisation, status: 'expired', feeCharged: null }),
      transferRow({ ...ended, organisation, status: 'open', account: 'GOPEN' }),
      transferRow({ ...ended, organisation, kind: 'deposit' }),
      transferRow(ended),
      ...jobs.map(({ id: lineJob }) => transferRow({ ...ended, lineJob, linePosition: 0 })),
    ],
  })
  const costs = { transfers: 4, failed: 2, fees: 30n }
  expect(await costsOf(organisation)).toEqual({ '24h': costs, '30d': costs })
  const { organisation: idle } = await found('Lucerne', [])
  expect((await costsOf(idle))?.['30d']).toEqual({ transfers: 0, failed: 0, fees: 0n })
})

test('transfers leave the last 24 hours and 30 days although nothing else is settled', async () => {
  const { organisation } = await found('Relecloud', [])
  const settle = (hours: number) =>
    insertRows(db, {
      transfers: [transferRow({ status: 'succeeded', organisation, feeCharged: 10n, createdAt: hoursAgo(hours) })],
    })
  const countsAfter = async (hours: number) => {
    while ((await moveWindows(db, hoursAgo(-hours))) > 0);
    const costs = await costsOf(organisation)
    return [costs?.['24h'].transfers, costs?.['30d'].transfers, Number(costs?.['30d'].fees)]
  }
  for (const hours of [0, 23, 24, 40, 29 * 24, 30 * 24]) await settle(hours)
  expect(await countsAfter(0)).toEqual([2, 5, 50])
  expect(await countsAfter(1)).toEqual([1, 5, 50])
  // One that was recorded long ago leaves with the next round.
  await settle(40)
  await settle(50)
  expect(await countsAfter(1)).toEqual([1, 7, 70])
  expect(await countsAfter(24)).toEqual([0, 6, 60])
  expect(await countsAfter(31 * 24)).toEqual([0, 0, 0])
})

test('counts nothing of an organisation that was dissolved for one that its user founds with the same id', async () => {
  const { organisation } = await found('Refounded', [])
  const settle = () =>
    insertRows(db, { transfers: [transferRow({ status: 'succeeded', organisation, feeCharged: 10n, createdAt: NOW })] })
  await settle()
  await db.delete(transfers).where(eq(transfers.organisation, organisation))
  await db.delete(organisations).where(eq(organisations.id, organisation))
  await insertRows(db, { organisations: [organisationRow({ id: organisation, name: 'Refounded' })] })
  const nothing = { transfers: 0, failed: 0, fees: 0n }
  expect(await costsOf(organisation)).toEqual({ '24h': nothing, '30d': nothing })
  while ((await moveWindows(db, hoursAgo(-40 * 24))) > 0);
  expect(await costsOf(organisation)).toEqual({ '24h': nothing, '30d': nothing })
})
