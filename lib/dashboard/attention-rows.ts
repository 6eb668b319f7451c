import { and, eq, notExists, or, type SQL, sql } from 'drizzle-orm'
import { unionAll } from 'drizzle-orm/pg-core'
import { acknowledgements } from '#drizzle/schema/audit.ts'
import { batches, contractors, identities, organisations, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { webhooks } from '#drizzle/schema/webhooks.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEABLE, type AcknowledgeableCondition, acknowledges } from './acknowledgements.ts'
import { type AttentionRow, MAX_LISTED, type RecordCondition } from './attention.ts'
import { batchStalled, payoutsFailed } from './batch-conditions.ts'
import { jobFailed } from './failed-jobs.ts'
import { jobStalled } from './stalled-jobs.ts'
import { foundPaid, outcomeUnknown, transferOverdue } from './transfer-conditions.ts'
import { refusalCode } from './transfer-rows.ts'
import { webhookDisabled } from './webhooks.ts'

/** The conditions of records, in the order in which a record's page lists them. */
export const CONDITIONS = {
  transferOverdue,
  outcomeUnknown,
  batchStalled,
  jobFailed,
  jobStalled,
  payoutsFailed,
  foundPaid,
  webhookDisabled,
} as const satisfies Record<AcknowledgeableCondition, RecordCondition>

const NAMES = Object.keys(CONDITIONS) as AcknowledgeableCondition[]

const TABLES = { batch: batches, job: relayJobs, transfer: transfers, webhook: webhooks } as const

/** A record whose page lists what needs attention about it. */
export type Subject = { batch: string } | { transfer: string } | { job: string } | { organisation: string }

/**
 * Reads the records that need attention in one statement, at most MAX_LISTED of each condition. Acknowledged records are left out.
 * @param only a record, to read it and what belongs to it alone, acknowledged or not
 */
export async function readRows(db: Database, now: Date, only?: Subject): Promise<AttentionRow[]> {
  const names = NAMES.filter((name) => only === undefined || isOnPageOf(ACKNOWLEDGEABLE[name].record, only))
  const [first, second, ...others] = names.map((name) => selectRecords(db, name, now, only).limit(MAX_LISTED))
  if (!first) return []
  const found = (second ? unionAll(first, second, ...others) : first).as('found')
  const { note, operator, at } = acknowledgements
  const { payoutCount, settledCount, failedCount } = batches
  const { kind, recipient, createdAt } = transfers
  const sub = sql<string | null>`coalesce(${relayJobs.userSub}, ${transfers.quotaAccount}, ${transfers.account})`
  const userKind = sql`coalesce(${relayJobs.userKind}, 'ledger')`
  const organisation = sql`coalesce(${batches.organisation}, ${transfers.organisation}, ${webhooks.organisation}, ${identities.organisation})`
  const rows = await db
    .select({
      condition: found.condition,
      id: found.id,
      lastEvent: found.lastEvent,
      acknowledgement: { note, operator, at },
      batch: { id: batches.id, name: batches.name, payoutCount, settledCount, failedCount },
      organisation: { id: organisations.id, name: organisations.name },
      sub,
      email: identities.email,
      contractor: { id: contractors.id, name: contractors.name },
      payoutStatus: payouts.status,
      transfer: { kind, recipient, createdAt, refusalCode },
    })
    .from(found)
    .leftJoin(acknowledgements, acknowledges(found))
    .leftJoin(transfers, eq(transfers.id, found.id))
    .leftJoin(relayJobs, eq(relayJobs.id, found.id))
    .leftJoin(webhooks, eq(webhooks.id, found.id))
    .leftJoin(payouts, eq(payouts.id, sql`coalesce(${transfers.payout}, ${transfers.foundFor})`))
    .leftJoin(batches, eq(batches.id, sql`coalesce(${payouts.batch}, ${relayJobs.batch}, ${found.id})`))
    .leftJoin(contractors, eq(contractors.id, payouts.contractor))
    .leftJoin(identities, and(eq(identities.kind, userKind), eq(identities.sub, sub)))
    .leftJoin(organisations, eq(organisations.id, organisation))
    .orderBy(found.lastEvent, found.id)
  return rows
    .map(({ sub: user, email, ...row }) => ({ ...row, user: user === null ? null : { sub: user, email } }))
    .toSorted((one, other) => NAMES.indexOf(one.condition) - NAMES.indexOf(other.condition))
}

/** Counts the records with a condition that were not acknowledged, up to `limit`. */
export const countRecords = (db: Database, name: AcknowledgeableCondition, now: Date, limit: number): Promise<number> =>
  db.$count(selectRecords(db, name, now).limit(limit).as('found'))

function selectRecords(db: Database, name: AcknowledgeableCondition, now: Date, only?: Subject) {
  const { record, lastEvent } = ACKNOWLEDGEABLE[name]
  const { id } = TABLES[record]
  const condition = sql<AcknowledgeableCondition>`${name}::text`
  const acknowledged = db.select({ note: acknowledgements.note }).from(acknowledgements)
  return db
    .select({
      condition: condition.as('found_condition'),
      id: sql<string>`${id}`.as('found_id'),
      lastEvent: sql`${lastEvent}`.mapWith(acknowledgements.seen).as('last_event'),
    })
    .from(TABLES[record])
    .where(
      and(
        CONDITIONS[name].holds(now),
        only ? isOf(record, only) : notExists(acknowledged.where(acknowledges({ condition, id, lastEvent }))),
      ),
    )
    .orderBy(...CONDITIONS[name].order)
    .$dynamic()
}

/** Whether the page of a record lists the conditions of a type of records: a batch's has those of its jobs and transfers. */
function isOnPageOf(record: keyof typeof TABLES, only: Subject): boolean {
  if ('organisation' in only) return record === 'webhook'
  return 'batch' in only ? record !== 'webhook' : record in only
}

/** The condition that a record is another one, or belongs to it. */
function isOf(record: keyof typeof TABLES, only: Subject): SQL | undefined {
  if ('organisation' in only) return eq(webhooks.organisation, only.organisation)
  if ('transfer' in only) return eq(transfers.id, only.transfer)
  if ('job' in only) return eq(relayJobs.id, only.job)
  if (record === 'batch') return eq(batches.id, only.batch)
  if (record === 'job') return eq(relayJobs.batch, only.batch)
  return sql`exists (select from ${payouts} where ${payouts.batch} = ${only.batch}
    and ${or(eq(payouts.id, transfers.payout), eq(payouts.id, transfers.foundFor))})`
}
