import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  batchRow,
  contractorRow,
  identityRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
} from '#lib/cli/seed/rows.ts'
import { findOrganisationLine } from '#lib/dashboard/organisations.ts'
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
