import { eq, inArray, sql } from 'drizzle-orm'
import { batches, contractors, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import type { AuditEntry } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import type { DiaryEntry } from './diary.ts'
import type { SeededOrganisation } from './directory.ts'
import type { Source } from './random.ts'
import { type StoryBatch, TODAY } from './story.ts'
import { newHashes, type SeededTransfer } from './transfers.ts'

const MINUTE_MS = 60_000
const DAY_MINUTES = 24 * 60

/** The batches of a week, of today, and `extra` small ones that came before. */
export function plannedBatches(
  organisations: readonly SeededOrganisation[],
  source: Source,
  extra: number,
): StoryBatch[] {
  const week = Array.from({ length: 7 * organisations.length }, (_, index): StoryBatch => {
    const organisation = (index % organisations.length) as 0 | 1 | 2
    const days = 1 + Math.floor(index / organisations.length)
    const count = 5 + source.number(6)
    return {
      organisation,
      name: `${organisations[organisation]?.batch}, ${days === 1 ? 'yesterday' : `${days} days ago`}`,
      status: 'completed',
      minutes: days * DAY_MINUTES + source.number(600) - 300,
      payouts: new Array<PayoutStatus>(count).fill('paid'),
    }
  })
  const many = Array.from(
    { length: extra },
    (_, index): StoryBatch => ({
      organisation: 0,
      name: `Small batch ${index + 1}`,
      status: index % 500 === 499 ? 'failed' : 'completed',
      minutes: 10 * DAY_MINUTES + index,
      payouts: [index % 500 === 499 ? 'failed' : 'paid'],
    }),
  )
  return [...many, ...week, ...TODAY].sort((one, other) => other.minutes - one.minutes)
}

/** Writes the batches with their payouts, adds to the `diary`, and resolves to the transfers that go with them. */
export async function seedBatches(
  db: Database,
  organisations: readonly SeededOrganisation[],
  planned: readonly StoryBatch[],
  source: Source,
  now: Date,
  diary: DiaryEntry[],
): Promise<SeededTransfer[]> {
  const transfers: SeededTransfer[] = []
  for (const batch of planned) {
    const organisation = organisations[batch.organisation]
    if (!organisation) continue
    const { id, began, ended, sent } = await seedBatch(db, organisation, batch, source, now)
    transfers.push(...sent)
    diary.push(...storyOf(organisation, { id, status: batch.status, began, ended }))
  }
  return transfers
}

async function seedBatch(
  db: Database,
  organisation: SeededOrganisation,
  { name, status, minutes, payouts: statuses }: StoryBatch,
  source: Source,
  now: Date,
): Promise<{ id: string; began: Date; ended: Date; sent: SeededTransfer[] }> {
  const began = now.getTime() - minutes * MINUTE_MS
  const count = (wanted: PayoutStatus) => statuses.filter((one) => one === wanted).length
  const isSent = status !== 'draft' && status !== 'ready'
  const ended = new Date(began + statuses.length * 6_000)
  const [made] = await db
    .insert(batches)
    .values({
      organisation: organisation.id,
      name,
      status,
      payoutCount: statuses.length - count('canceled'),
      settledCount: count('paid'),
      failedCount: count('failed'),
      createdAt: new Date(began - 5 * MINUTE_MS),
      startedAt: isSent ? new Date(began) : null,
      completedAt: status === 'completed' ? ended : null,
    })
    .returning({ id: batches.id })
  if (!made) throw new Error('an insert without a row')
  const planned = statuses.map((payout, index) => {
    const { id: contractor, address } = organisation.payees[index % organisation.payees.length] ?? {
      id: '',
      address: '',
    }
    const sentAt = new Date(began + index * 6_000)
    const settledAt = new Date(sentAt.getTime() + 1_500 + source.number(4_500))
    return { payout, contractor, address, sentAt, settledAt, hashes: newHashes(source) }
  })
  const rows = await db
    .insert(payouts)
    .values(
      planned.map(({ payout, contractor, address, settledAt, hashes }) => ({
        organisation: organisation.id,
        batch: made.id,
        contractor,
        status: payout,
        address,
        encryptedAmount: 'sealed by the seed',
        transfer: isMoved(payout) ? hashes.id : null,
        txHash: payout === 'paid' ? hashes.outerHash : null,
        error: payout === 'failed' ? 'transfer failed on the ledger: contract error 3506' : null,
        createdAt: new Date(began - 4 * MINUTE_MS),
        paidAt: payout === 'paid' ? settledAt : null,
      })),
    )
    .returning({ id: payouts.id })
  const paid = planned.filter(({ payout }) => payout === 'paid')
  const last = paid.at(-1)
  if (last) {
    await db
      .update(contractors)
      .set({ lastPaidAt: sql`greatest(${contractors.lastPaidAt}, ${last.settledAt.toISOString()}::timestamptz)` })
      .where(
        inArray(
          contractors.id,
          paid.map(({ contractor }) => contractor),
        ),
      )
  }
  const sent = planned.flatMap<SeededTransfer>(({ payout, address, sentAt, settledAt, hashes }, index) =>
    isMoved(payout)
      ? [
          {
            ...hashes,
            // An account has one open transfer at most.
            account: payout === 'pending' ? source.address() : organisation.account,
            recipient: address,
            organisation: organisation.id,
            payout: rows[index]?.id ?? '',
            outcome: payout === 'paid' ? 'succeeded' : payout === 'failed' ? 'failed' : 'open',
            createdAt: sentAt,
            settledAt: payout === 'pending' ? null : settledAt,
          },
        ]
      : [],
  )
  return { id: made.id, began: new Date(began), ended, sent }
}

const isMoved = (status: PayoutStatus) => status === 'paid' || status === 'failed' || status === 'pending'

function storyOf(
  { id: organisation, account }: SeededOrganisation,
  batch: { id: string; status: StoryBatch['status']; began: Date; ended: Date },
): DiaryEntry[] {
  const actor = { kind: 'ledger' as const, sub: account }
  const subject = { kind: 'batch' as const, id: batch.id }
  const entry = (at: Date, action: AuditEntry['action']) => ({ at, entry: { organisation, actor, action, subject } })
  const made = new Date(batch.began.getTime() - 5 * MINUTE_MS)
  const isLocked = batch.status !== 'draft'
  const isStarted = isLocked && batch.status !== 'ready'
  return [
    entry(made, 'batch.created'),
    entry(made, 'batch.instructed'),
    ...(isLocked ? [entry(made, 'batch.locked')] : []),
    ...(isStarted ? [entry(batch.began, 'batch.started')] : []),
    ...(batch.status === 'completed' ? [entry(batch.ended, 'batch.completed')] : []),
    ...(batch.status === 'failed' ? [entry(batch.ended, 'batch.failed')] : []),
  ]
}

/** Whether a service has been seeded before. */
export async function hasBatch(db: Database, name: string): Promise<boolean> {
  const [found] = await db.select({ id: batches.id }).from(batches).where(eq(batches.name, name)).limit(1)
  return found !== undefined
}
