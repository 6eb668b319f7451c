import { eq } from 'drizzle-orm'
import { sponsoredTransfers } from '#drizzle/schema.ts'
import type { Database } from '#lib/db.ts'
import { newestFirst } from '#lib/paging.ts'
import { explainTransfer } from './explanation.ts'
import { listRefusals } from './refusals.ts'

/** Something that did not go well, and why. */
export interface Trouble {
  id: string
  at: Date
  kind: 'failed' | 'dead' | 'refused'
  account: string
  why: string
}

/** The last `limit` transfers that failed, died or were refused, newest first. */
export async function listTroubles(db: Database, limit: number): Promise<Trouble[]> {
  const [failed, dead, refused] = await Promise.all([
    ended(db, 'failed', limit),
    ended(db, 'dead', limit),
    listRefusals(db, { limit, after: undefined }),
  ])
  const refusals = refused.items.map(({ sequence, createdAt, account, words }) => ({
    id: `refusal ${sequence}`,
    at: createdAt,
    kind: 'refused' as const,
    account,
    why: words,
  }))
  const all: Trouble[] = [...failed, ...dead, ...refusals]
  return all.sort((one, other) => other.at.getTime() - one.at.getTime()).slice(0, limit)
}

async function ended(db: Database, status: 'failed' | 'dead', limit: number): Promise<Trouble[]> {
  const rows = await db
    .select({
      id: sponsoredTransfers.innerHash,
      status: sponsoredTransfers.status,
      account: sponsoredTransfers.account,
      resultCode: sponsoredTransfers.resultCode,
      contractError: sponsoredTransfers.contractError,
      createdAt: sponsoredTransfers.createdAt,
      settledAt: sponsoredTransfers.settledAt,
    })
    .from(sponsoredTransfers)
    .where(eq(sponsoredTransfers.status, status))
    .orderBy(...newestFirst(sponsoredTransfers))
    .limit(limit)
  return rows.map((row) => ({
    id: row.id,
    at: row.settledAt ?? row.createdAt,
    kind: status,
    account: row.account,
    why: explainTransfer(row),
  }))
}
