import { and, asc, eq, inArray, lt, or, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Attention } from './attention.ts'
import { jobLimit, transferLimit, WHY_OVERDUE } from './lateness.ts'
import { firstInnerHash, refusalCode, TRANSFER_VIEWS, transferRows } from './transfer-rows.ts'
import { findUserOrganisations } from './users.ts'

const MOST = 20

/** The service cannot tell whether it was paid, so it never pays again by itself. Only the employer can settle it. */
const UNDECIDABLE = {
  level: 'bad',
  what: 'Whether a payout was paid can no longer be told',
  why: 'the history of the RPC begins after the transfer, so that its payout stays pending',
  remedy: 'Look for the hash on an explorer of the network, and tell the employer, who cancels the payout.',
} as const

function describeOpen(resultCode: string | null) {
  const said = resultCode === null ? '' : `the network last said ${resultCode}; `
  return {
    level: 'late',
    what: 'A transfer is overdue',
    why: `${said}${WHY_OVERDUE}`,
    remedy:
      'If Ledger on the overview says “Following”, the RPC no longer has the ledgers of that time: set the variable STELLAR_RPC_URL to an RPC that still has them, and start the service again. If it says something else, bring the RPC back. The service then finds out by itself, and nothing is paid twice meanwhile.',
  } as const
}

/** The transfers, of all or of one batch, that were not decided in the time in which one can be valid, the oldest first. */
export async function listOldOpenTransfers(db: Database, now: Date, only?: string): Promise<Attention[]> {
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
    .limit(MOST)
  return rows.map((row) => ({
    key: `open ${row.hash}`,
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
    .having(sql`${movedAt} < ${jobLimit(now).toISOString()}::timestamptz`)
    .orderBy(movedAt)
    .limit(MOST)
  const users = await findUserOrganisations(db, jobs)
  return jobs.map(({ id, kind, sub, movedAt: since, left }) => {
    const organisation = users.get(`${kind}:${sub}`)
    return {
      key: `slow ${id}`,
      level: 'late',
      since,
      what: 'A relay job stands still',
      why: `${left} of its transfers ${left === 1 ? 'has' : 'have'} not ended`,
      actor: 'operator',
      remedy: 'Open the job: the channels above it say whether a relay runs, and what keeps them from paying.',
      ...(organisation && { organisation }),
      page: `/jobs?q=${id}`,
    }
  })
}
