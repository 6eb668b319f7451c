import { and, asc, eq, exists, inArray, lt, notExists, or, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED, NAMES_SHOWN } from './attention.ts'
import { CONDITIONS } from './conditions.ts'
import { isUnresolved } from './failed-jobs.ts'
import { batchLimit } from './lateness.ts'

/**
 * Lists the batches in progress without recent progress, longest first. A batch that the relay is paying is listed as its
 * run, and so is one whose run has failed without failing its payouts: the employer has nothing to send.
 * @param only the id of a batch to report on alone, acknowledged or not
 */
export async function listStalledBatches(db: Database, now: Date, only?: string): Promise<Attention[]> {
  const unresolved = db
    .select({ job: relayLines.job })
    .from(relayLines)
    .where(and(eq(relayLines.job, relayJobs.id), isUnresolved))
  const unsent = db
    .select({ id: payouts.id })
    .from(payouts)
    .where(and(eq(payouts.batch, batches.id), eq(payouts.status, 'ready')))
  const run = db
    .select({ id: relayJobs.id })
    .from(relayJobs)
    .where(and(eq(relayJobs.batch, batches.id), or(eq(relayJobs.status, 'running'), exists(unresolved))))
  const rows = await db
    .select({
      id: batches.id,
      name: batches.name,
      organisation: organisations.id,
      organisationName: organisations.name,
      payoutCount: batches.payoutCount,
      settledCount: batches.settledCount,
      failedCount: batches.failedCount,
      progressedAt: batches.progressedAt,
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .leftJoin(acknowledgementRows, acknowledges('batchStalled', batches.id, batches.progressedAt))
    .where(
      and(
        eq(batches.status, 'started'),
        lt(batches.progressedAt, batchLimit(now)),
        notExists(run),
        exists(unsent),
        only === undefined ? isUnacknowledged : eq(batches.id, only),
      ),
    )
    .orderBy(asc(batches.progressedAt), asc(batches.sequence))
    .limit(MAX_LISTED)
  const unsentOf = await findUnsent(
    db,
    rows.map(({ id }) => id),
  )
  return rows.map((row) => {
    const { id, name, organisation, organisationName, payoutCount, settledCount, failedCount, progressedAt } = row
    const first = unsentOf.get(id) ?? []
    const waiting = first[0]?.all ?? 0
    const rest = waiting === 1 ? 'the last payout' : `the remaining ${waiting} payouts`
    return {
      ...CONDITIONS.batchStalled.notice,
      key: `stalled ${id}`,
      since: progressedAt ?? undefined,
      what: `${payoutCount - settledCount} of ${payoutCount} unpaid`,
      isOngoing: true,
      why: `the employer’s application has sent nothing since; ${settledCount} paid, ${failedCount} failed, ${waiting} waiting`,
      asksToPay: true,
      actor: 'employer',
      remedy: `Ask the employer to send ${rest}.`,
      request: `Please open your payroll application and send ${rest}, or cancel ${waiting === 1 ? 'it' : 'them'}.`,
      organisation: { id: organisation, name: organisationName },
      batch: { id, name },
      contractors: first.map(({ id: contractor, name: contractorName }) => ({ id: contractor, name: contractorName })),
      moreContractors: Math.max(0, waiting - first.length),
      ...(progressedAt && { acknowledgeable: { condition: 'batchStalled', subject: id, lastEvent: progressedAt } }),
      acknowledgement: row.acknowledgement,
      page: `/batches/${id}?status=ready`,
    }
  })
}

/** Finds the first few contractors of each batch whose payouts are not sent, and how many there are, by batch. */
async function findUnsent(db: Database, ids: readonly string[]) {
  if (ids.length === 0) return new Map<string, never>()
  const { batch, sequence, status } = payouts
  const place = sql<number>`row_number() over (partition by ${batch} order by ${sequence})`
  const all = sql`count(*) over (partition by ${batch})`.mapWith(Number)
  const unsent = db
    .select({ batch, id: contractors.id, name: contractors.name, place: place.as('place'), all: all.as('all') })
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(and(inArray(batch, [...ids]), eq(status, 'ready')))
    .as('unsent')
  const rows = await db
    .select()
    .from(unsent)
    .where(sql`${unsent.place} <= ${NAMES_SHOWN}`)
    .orderBy(unsent.batch, unsent.place)
  return Map.groupBy(rows, (row) => row.batch)
}
