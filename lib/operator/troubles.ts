import { eq, inArray, sql } from 'drizzle-orm'
import { batchItems } from '#drizzle/schema/relay.ts'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { explainTransfer } from './explanation.ts'
import { listRefusals } from './refusals.ts'

/** Something that did not go well, when that was settled, and why. */
export interface Trouble {
  id: string
  at: Date
  kind: 'failed' | 'dead' | 'refused'
  account: string
  why: string
}

/** The last `limit` transfers that failed, died or were refused, and items of jobs that ended unpaid, newest first. */
export async function listTroubles(db: Database, limit: number): Promise<Trouble[]> {
  const [transfers, items, refusals] = await Promise.all([
    unsuccessfulTransfers(db, limit),
    failedItems(db, limit),
    listRefusals(db, { limit, after: undefined }),
  ])
  // An item that the sponsor refused has failed of it: that is told once.
  const told = new Set(items.map(({ innerHash }) => innerHash))
  const refused = refusals.items
    .filter(({ innerHash }) => !told.has(innerHash))
    .map(({ sequence, createdAt, account, words }) => ({
      id: `refusal ${sequence}`,
      at: createdAt,
      kind: 'refused' as const,
      account,
      why: words,
    }))
  const all: Trouble[] = [...transfers, ...items.map(({ trouble }) => trouble), ...refused]
  return all.sort((one, other) => other.at.getTime() - one.at.getTime()).slice(0, limit)
}

const UNSUCCESSFUL = ['failed', 'dead'] as const

async function unsuccessfulTransfers(db: Database, limit: number): Promise<Trouble[]> {
  const { settledAt } = sponsoredTransfers
  const rows = await db
    .select({
      id: sponsoredTransfers.innerHash,
      status: sponsoredTransfers.status,
      account: sponsoredTransfers.account,
      resultCode: sponsoredTransfers.resultCode,
      contractError: sponsoredTransfers.contractError,
      createdAt: sponsoredTransfers.createdAt,
      settledAt,
    })
    .from(sponsoredTransfers)
    .where(inArray(sponsoredTransfers.status, UNSUCCESSFUL))
    .orderBy(sql`${settledAt} desc`)
    .limit(limit)
  return rows.map((row) => ({
    id: row.id,
    at: row.settledAt ?? row.createdAt,
    kind: row.status === 'dead' ? 'dead' : 'failed',
    account: row.account,
    why: explainTransfer(row),
  }))
}

async function failedItems(db: Database, limit: number): Promise<{ innerHash: string | null; trouble: Trouble }[]> {
  const { job, position, innerHash, quotaAccount, error, queuedAt, settledAt } = batchItems
  const rows = await db
    .select({ job, position, innerHash, account: quotaAccount, error, queuedAt, settledAt })
    .from(batchItems)
    .where(eq(batchItems.status, 'failed'))
    .orderBy(sql`${settledAt} desc`)
    .limit(limit)
  return rows.map((row) => ({
    innerHash: row.innerHash,
    trouble: {
      id: `item ${row.position} of ${row.job}`,
      at: row.settledAt ?? row.queuedAt,
      kind: 'failed',
      account: row.account,
      why: `transfer ${row.position + 1} of a job of the relay’s: ${row.error ?? 'no reason is known'}`,
    },
  }))
}
