import { and, asc, eq, inArray, lt, or, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Attention } from './attention.ts'
import { findUserOrganisations } from './job-users.ts'
import { firstInnerHash, refusalCode, TRANSFER_VIEWS, transferRows } from './transfer-rows.ts'

/** The longest maxTime of a transfer is 330 s: an older one should have been decided (ms). */
const OPEN_TOO_LONG_MS = 6 * 60_000

/** A job of which no item has moved for so long stands still (ms). */
const JOB_STILL_AFTER_MS = 10 * 60_000

const MOST = 20

/** Whether it was paid only the employer can settle: the service never pays it again by itself. */
const UNDECIDABLE = {
  what: 'Whether a payout was paid can no longer be told',
  why: 'the history of the RPC begins after the transfer, so that its payout stays pending',
  remedy: 'Look for the hash on an explorer of the network, and tell the employer, who cancels the payout.',
}

function describeOpen(resultCode: string | null) {
  const said = resultCode === null ? '' : `the network last said ${resultCode}; `
  return {
    what: 'A transfer is overdue',
    why: `${said}it was sent, and the RPC has not shown within 6 minutes whether it was paid`,
    remedy:
      'See that the RPC (Ledger, below) follows the network and still has the ledgers since it was sent. The service then decides by itself; nothing is paid twice meanwhile.',
  }
}

/** The transfers that were not decided in the time in which one can be valid, the oldest first. */
export async function listOldOpenTransfers(db: Database, now: Date): Promise<Attention[]> {
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
        lt(transferRows.createdAt, new Date(now.getTime() - OPEN_TOO_LONG_MS)),
      ),
    )
    .orderBy(asc(transferRows.createdAt))
    .limit(MOST)
  return rows.map((row) => ({
    key: `open ${row.hash}`,
    level: 'bad',
    since: row.createdAt,
    actor: 'operator',
    ...(row.status === 'unknown' ? UNDECIDABLE : describeOpen(row.resultCode)),
    ...(row.organisation && { organisation: { id: row.organisation, name: row.organisationName ?? '' } }),
    ...(row.batch && { batch: { id: row.batch, name: row.batchName ?? '' } }),
    ...(row.contractor && { contractors: [{ id: row.contractor, name: row.contractorName ?? '' }] }),
    page: `/transfers?q=${row.hash}`,
  }))
}

/** The running jobs of which nothing has moved for long. */
export async function listSlowJobs(db: Database, now: Date): Promise<Attention[]> {
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
    .having(sql`${movedAt} < ${new Date(now.getTime() - JOB_STILL_AFTER_MS).toISOString()}::timestamptz`)
    .orderBy(movedAt)
    .limit(MOST)
  const users = await findUserOrganisations(db, jobs)
  return jobs.map(({ id, kind, sub, movedAt: since, left }) => {
    const organisation = users.get(`${kind}:${sub}`)
    return {
      key: `slow ${id}`,
      level: 'bad',
      since,
      what: 'A relay job stands still',
      why: `${left} of its transfers have not ended`,
      actor: 'operator',
      remedy: 'See that a relay runs and that its channels can pay: the page of jobs shows them.',
      ...(organisation && { organisation }),
      page: `/jobs?q=${id}`,
    }
  })
}
