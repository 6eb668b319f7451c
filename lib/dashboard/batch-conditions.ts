import { and, desc, eq, gt, inArray, lte, not, sql } from 'drizzle-orm'
import { batches, contractors, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { type AttentionRow, NAMES_SHOWN, type Notice, type RecordCondition } from './attention.ts'
import { askTo, describeCauses, type FailedFor, stepAfter } from './causes.ts'
import { causeOfPayout } from './explanation.ts'
import { isLate } from './lateness.ts'
import { isUnresolved } from './line-state.ts'
import { outcomeOf, paysPayout } from './transfer-rows.ts'

type Batch = NonNullable<AttentionRow['batch']>

/** The number of a batch's latest failures whose reasons are read. */
const MAX_EXPLAINED = 200

/** Payouts of a batch have failed. Acknowledged, it is listed again once another fails. */
export const payoutsFailed: RecordCondition = {
  level: 'bad',
  tab: 'failed',
  holds: () => gt(batches.failedCount, 0),
  order: [desc(batches.failedAt), batches.id],
  describe: async (db, ids) => {
    const failures = Map.groupBy(await selectFailures(db, ids), ({ batch }) => batch)
    return ({ id, batch }) => batch && describeFailures(batch, failures.get(id) ?? [])
  },
}

type Failure = Awaited<ReturnType<typeof selectFailures>>[number]

function describeFailures({ payoutCount, failedCount }: Batch, failed: readonly Failure[]) {
  const [newest] = failed
  if (!newest) return undefined
  const causes = failed.map((failure): FailedFor => {
    const { meaning, advice } = causeOfPayout(failure)
    return { count: 1, meaning: meaning || (failure.error ?? ''), advice }
  })
  const payoutsAgain = failedCount === 1 ? 'the failed payout' : `the ${failedCount} failed payouts`
  const sample = failedCount > failed.length ? `of the last ${failed.length}` : undefined
  return {
    since: newest.first,
    what: `${failedCount} of ${payoutCount} ${payoutCount === 1 ? 'payout' : 'payouts'} failed`,
    why: `${sample ? `${sample}: ` : ''}${describeCauses(causes)}`,
    ...(newest.mayBePaid ? checkFirst(failedCount) : stepAfter(causes, `send ${payoutsAgain} again`, { sample })),
    contractors: failed.slice(0, NAMES_SHOWN).map(({ contractor }) => contractor),
    moreContractors: Math.max(0, failedCount - NAMES_SHOWN),
  } satisfies Notice & { since: Date }
}

/** The next step if one of the payouts may have been paid after all. */
const checkFirst = (failedCount: number) =>
  askTo(
    failedCount === 1
      ? 'check with the contractor whether the payment arrived; cancel the payout if it did, and send it again if it did not'
      : 'check with the contractors which payments arrived; cancel the payouts of those, and send only the others again',
  )

/** Selects the latest failed payouts of batches, newest first. */
function selectFailures(db: Database, ids: string[]) {
  const { id, batch, status, createdAt, sequence } = payouts
  const failedAt = sql`coalesce(${transfers.settledAt}, ${createdAt})`
  const rank = sql`row_number() over (partition by ${batch} order by ${failedAt} desc, ${sequence})`
  const mayBePaid = sql<boolean>`bool_or(coalesce(${transfers.status} = 'expired' and ${transfers.resultCode} is not null, false))
    over (partition by ${batch})`
  const ranked = db
    .select({
      payout: id,
      /** whether one of the batch may have been paid by a transaction that the service doesn't know */
      mayBePaid: mayBePaid.as('may_be_paid'),
      /** the batch's first failure */
      first: sql`min(${failedAt}) over (partition by ${batch})`.mapWith(createdAt).as('first'),
      place: rank.mapWith(Number).as('place'),
    })
    .from(payouts)
    .leftJoin(transfers, paysPayout)
    .where(and(inArray(batch, ids), eq(status, 'failed')))
    .as('ranked')
  return db
    .select({
      batch,
      contractor: { id: contractors.id, name: contractors.name },
      error: payouts.error,
      first: ranked.first,
      mayBePaid: ranked.mayBePaid,
      outcome: outcomeOf,
    })
    .from(ranked)
    .innerJoin(payouts, eq(payouts.id, ranked.payout))
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .leftJoin(transfers, paysPayout)
    .where(lte(ranked.place, MAX_EXPLAINED))
    .orderBy(batch, ranked.place)
}

const hasUnsentPayout = sql`exists (select from ${payouts} where ${payouts.batch} = ${batches.id} and ${payouts.status} = 'ready')`

const hasUnfinishedRun = sql`exists (select from ${relayJobs} where ${relayJobs.batch} = ${batches.id} and (${relayJobs.status} = 'running'
  or exists (select from ${relayLines} where ${relayLines.job} = ${relayJobs.id} and ${isUnresolved})))`

/**
 * An employer has stopped sending the payouts of a batch. A batch that the relay is paying is listed as its run, and so is one
 * whose run has failed without failing its payouts: the employer has nothing to send.
 */
export const batchStalled: RecordCondition = {
  level: 'late',
  tab: 'ready',
  holds: (now) => and(isLate('batch', now), not(hasUnfinishedRun), hasUnsentPayout),
  order: [batches.progressedAt, batches.sequence],
  describe: async (db, ids) => {
    const unsent = Map.groupBy(await selectUnsent(db, ids), ({ batch }) => batch)
    return ({ id, batch }) => batch && describeUnsent(batch, unsent.get(id) ?? [])
  },
}

function describeUnsent(
  { payoutCount, settledCount, failedCount }: Batch,
  unsent: Awaited<ReturnType<typeof selectUnsent>>,
) {
  const waiting = unsent[0]?.all ?? 0
  const rest = waiting === 1 ? 'the last payout' : `the remaining ${waiting} payouts`
  return {
    what: `${payoutCount - settledCount} of ${payoutCount} unpaid`,
    isOngoing: true,
    why: `the employer’s application has sent nothing since; ${settledCount} paid, ${failedCount} failed, ${waiting} waiting`,
    ...askTo(`send ${rest}`),
    request: `Please open your payroll application and send ${rest}, or cancel ${waiting === 1 ? 'it' : 'them'}.`,
    contractors: unsent.map(({ contractor, name }) => ({ id: contractor, name })),
    moreContractors: Math.max(0, waiting - unsent.length),
  } satisfies Notice
}

/** Selects the first few contractors of each batch whose payouts are not sent, and how many there are. */
function selectUnsent(db: Database, ids: string[]) {
  const { batch, sequence, status } = payouts
  const place = sql<number>`row_number() over (partition by ${batch} order by ${sequence})`
  const all = sql`count(*) over (partition by ${batch})`.mapWith(Number)
  const unsent = db
    .select({ batch, contractor: contractors.id, name: contractors.name, place: place.as('place'), all: all.as('all') })
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(and(inArray(batch, ids), eq(status, 'ready')))
    .as('unsent')
  return db.select().from(unsent).where(lte(unsent.place, NAMES_SHOWN)).orderBy(unsent.batch, unsent.place)
}
