import { and, asc, eq, inArray, lt, or, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Attention } from './attention.ts'
import { CONDITIONS } from './conditions.ts'
import { jobLimit, transferLimit, WHY_OVERDUE } from './lateness.ts'
import { firstInnerHash, refusalCode, TRANSFER_VIEWS, transferRows } from './transfer-rows.ts'
import { findUserOrganisations } from './users.ts'

const LIMIT = 20

/** The service does not know whether the payout was paid, so it never pays again. Only the employer can cancel it. */
const UNKNOWN_OUTCOME = {
  ...CONDITIONS.outcomeUnknown.notice,
  why: 'the RPC’s history begins after the transfer, so the payout stays pending',
  remedy: 'Look up the hash in an explorer of the network, and tell the employer, who can cancel the payout.',
} as const

function describeOverdue(resultCode: string | null) {
  const response = resultCode === null ? '' : `the network’s last response was ${resultCode}; `
  return {
    ...CONDITIONS.transferOverdue.notice,
    why: `${response}${WHY_OVERDUE}`,
    remedy:
      'If Ledger on the overview says “Following”, the RPC no longer has the ledgers of that time: set STELLAR_RPC_URL to an RPC that still has them, and restart the service. Otherwise restore the RPC. The service then settles the transfer itself. Until then it pays nothing twice.',
  } as const
}

/**
 * Lists the transfers, of one batch or all, that have been undecided for longer than an envelope can be valid, oldest
 * first.
 */
export async function listOverdueTransfers(db: Database, now: Date, only?: string): Promise<Attention[]> {
  const rows = await db
    .select({
      hash: firstInnerHash,
      status: transferRows.status,
      createdAt: transferRows.createdAt,
      resultCode: refusalCode,
      organisation: organisations.id,
      organisationName: organisations.name,
      batch: batches.id,
      batchName: batches.name,
      contractor: contractors.id,
      contractorName: contractors.name,
    })
    .from(transferRows)
    .leftJoin(organisations, eq(organisations.id, transferRows.organisation))
    .leftJoin(payouts, eq(payouts.id, transferRows.payout))
    .leftJoin(batches, eq(batches.id, payouts.batch))
    .leftJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(
      and(
        or(
          inArray(transferRows.status, [...TRANSFER_VIEWS.open]),
          and(eq(transferRows.status, 'unknown'), eq(payouts.status, 'pending')),
        ),
        lt(transferRows.createdAt, transferLimit(now)),
        only === undefined ? undefined : eq(batches.id, only),
      ),
    )
    .orderBy(asc(transferRows.createdAt))
    .limit(LIMIT)
  return rows.map((row) => ({
    key: `open ${row.hash}`,
    since: row.createdAt,
    actor: 'operator',
    ...(row.status === 'unknown' ? UNKNOWN_OUTCOME : describeOverdue(row.resultCode)),
    ...(row.organisation && { organisation: { id: row.organisation, name: row.organisationName ?? '' } }),
    ...(row.batch && { batch: { id: row.batch, name: row.batchName ?? '' } }),
    ...(row.contractor && { contractors: [{ id: row.contractor, name: row.contractorName ?? '' }] }),
    page: `/transfers?q=${row.hash}`,
  }))
}

/** Lists the running jobs without recent progress. */
export async function listStalledJobs(db: Database, now: Date): Promise<Attention[]> {
  const movedAt = sql`max(greatest(${batchItems.queuedAt}, ${batchItems.sentAt}, ${batchItems.settledAt}))`
  const jobs = await db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
      movedAt: movedAt.mapWith(batchItems.queuedAt),
      left: sql`count(*) filter (where ${batchItems.settledAt} is null)`.mapWith(Number),
    })
    .from(batchJobs)
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .where(eq(batchJobs.status, 'running'))
    .groupBy(batchJobs.id)
    .having(sql`${movedAt} < ${jobLimit(now).toISOString()}::timestamptz`)
    .orderBy(movedAt)
    .limit(LIMIT)
  const users = await findUserOrganisations(db, jobs)
  return jobs.map(({ id, kind, sub, movedAt: since, left }) => {
    const organisation = users.get(`${kind}:${sub}`)
    return {
      key: `slow ${id}`,
      ...CONDITIONS.jobStalled.notice,
      since,
      why: `${left} of its transfers ${left === 1 ? 'is' : 'are'} unfinished`,
      actor: 'operator',
      remedy: 'Open the job. The channels above it show whether a relay is running, and why it cannot pay.',
      ...(organisation && { organisation }),
      page: `/jobs?q=${id}`,
    }
  })
}
