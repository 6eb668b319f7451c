import { expect } from 'vitest'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Client, Job, RelayService } from '../relay/relay-service.ts'
import type { RunBatch, RunFixture } from '../relay/run-fixture.ts'
import { findDiscrepancies } from '../transfers/quota-ledger.ts'
import type { SignedInPayer, TestService } from './test-service.ts'
import { countFeeBumps, expectSettled } from './transfers.ts'

type Service = Pick<TestService<'embedded'>, 'db' | 'ledger'>

/** An account's quota of the day, once it has one. */
export async function quotaOf({ db }: Pick<Service, 'db'>, account: string) {
  return (await db.query.quotas.findMany()).find((row) => row.account === account)
}

/**
 * Requires that the account's quota paid for these applied transactions, each with its own hash, and for no other payment
 * that succeeded or may yet succeed.
 */
async function expectPayments(service: Service, account: string, hashes: readonly string[]): Promise<void> {
  const { rpc } = service.ledger.network
  const rows = await service.db.query.transfers.findMany({
    where: ({ kind, quotaAccount, account: source }, { and, eq, inArray, or }) =>
      and(inArray(kind, ['transfer', 'delegated']), or(eq(quotaAccount, account), eq(source, account))),
  })
  const succeeded = rows.filter(({ status }) => status === 'succeeded').map(({ hash }) => hash)
  expect(succeeded.toSorted()).toEqual(hashes.toSorted())
  expect(new Set(hashes).size).toBe(hashes.length)
  expect(rows.filter(({ status }) => status === 'open' || status === 'unknown')).toEqual([])
  const statuses = await Promise.all(hashes.map(async (hash) => (await rpc.getTransaction(hash)).status))
  expect(statuses).toEqual(hashes.map(() => 'SUCCESS'))
  const discrepancies = (await findDiscrepancies(service.db)) as { account: string }[]
  expect(discrepancies.filter((row) => row.account === account)).toEqual([])
  // Without a row, all of its payments were recorded from the ledger, and it paid for none.
  expect((await quotaOf(service, account))?.held ?? 0n).toBe(0n)
}

/** Requires that the sponsor paid once for an employer's only transaction, which succeeded, and settled its cost. */
export async function expectSponsoredOnce(
  service: TestService<'embedded'> | RelayService,
  employer: SignedInPayer,
  innerHash: string,
): Promise<void> {
  expect(await countFeeBumps(service, innerHash)).toBe(1)
  const row = await service.findTransfer(innerHash)
  expect(row).toMatchObject({ status: 'succeeded' })
  await expectSettled(service, employer, innerHash)
  const isPayment = row?.kind === 'transfer'
  await expectPayments(service, employer.address, isPayment ? [row.hash ?? ''] : [])
}

/**
 * Waits until a job has ended, and requires each of its items to be paid by one transaction. Then the payees have received
 * these totals, from every job of the test.
 */
export async function expectJobPaidOnce(
  service: RelayService,
  client: Client,
  jobId: string,
  ...totals: [payee: Holder, total: bigint][]
): Promise<Job> {
  const job = await service.ended(client, jobId)
  expect(job).toMatchObject({ status: 'completed' })
  expect(job.error).toBeUndefined()
  const jobs = await service.db.query.relayJobs.findMany({ where: (row, { eq }) => eq(row.userSub, client.address) })
  const items = await service.db.query.relayLines.findMany({
    where: (item, { inArray }) =>
      inArray(
        item.job,
        jobs.map(({ id }) => id),
      ),
    orderBy: (item) => item.position,
  })
  const ofJob = items.filter((item) => item.job === jobId)
  expect(ofJob).not.toEqual([])
  expect(ofJob.map(({ outcome }) => outcome)).toEqual(ofJob.map(() => 'paid'))
  expect(job.results).toMatchObject(ofJob.map(({ position, hash }) => ({ i: position, hash, status: 'SUCCESS' })))
  for (const [payee, total] of totals) expect(await service.received(payee)).toBe(total)
  const paid = items.filter(({ outcome }) => outcome === 'paid')
  await expectPayments(
    service,
    client.address,
    paid.map(({ hash }) => hash ?? ''),
  )
  return job
}

/** Waits until every run of a batch has ended, and requires each of its payouts to be paid by one transaction. */
export async function expectRunPaidOnce(
  runs: RunFixture,
  batch: RunBatch,
  amounts: readonly bigint[],
): Promise<BatchWithPayouts> {
  const ended = await runs.ended(batch)
  expect(ended).toMatchObject({ status: 'completed', settledCount: amounts.length, failedCount: 0 })
  expect(ended.payouts.map(({ status }) => status)).toEqual(amounts.map(() => 'paid'))
  expect(await runs.received(batch)).toEqual(amounts)
  const { db } = runs.fixture
  const payouts = await db.query.payouts.findMany()
  const organisation = payouts.find(({ batch: id }) => id === batch.id)?.organisation
  const paid = payouts.filter((payout) => payout.organisation === organisation && payout.status === 'paid')
  await expectPayments(
    runs.fixture,
    batch.employer.address,
    paid.map(({ txHash }) => txHash ?? ''),
  )
  return ended
}
