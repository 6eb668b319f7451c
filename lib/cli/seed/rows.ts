import { randomUUID } from 'node:crypto'
import { batches, contractors, identities, organisations, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { foldEmail } from '#lib/text/email.ts'
import { countSettled } from '#lib/transfers/counts.ts'

type Organisation = typeof organisations.$inferInsert
type Identity = typeof identities.$inferInsert
type Contractor = typeof contractors.$inferInsert
type Batch = typeof batches.$inferInsert
type Payout = typeof payouts.$inferInsert
type Job = typeof relayJobs.$inferInsert
type Item = typeof relayLines.$inferInsert
type Transfer = typeof transfers.$inferInsert
type Envelope = typeof envelopes.$inferInsert

const INVITE_MS = 14 * 86_400_000

// Each function builds a row that the constraints of its table accept, with every default overridden by `fields`. The
// columns that a status requires (a time, a hash) are set with it.

export function organisationRow(fields: Partial<Organisation> = {}) {
  return { id: randomUUID(), name: 'Acme', ...fields }
}

export function identityRow(fields: Partial<Identity> & { sub: string }): Identity {
  const kind = fields.kind ?? 'ledger'
  return { kind, issuer: kind === 'idp' ? 'https://login.example' : null, ...fields }
}

export function contractorRow(fields: Partial<Contractor> & { organisation: string }) {
  const createdAt = fields.createdAt ?? new Date()
  return {
    id: randomUUID(),
    name: 'Ada',
    status: 'ready' as const,
    emailFolded: fields.email ? foldEmail(fields.email) : undefined,
    inviteExpiresAt: new Date(createdAt.getTime() + INVITE_MS),
    createdAt,
    ...fields,
  }
}

export function batchRow(fields: Partial<Batch> & { organisation: string }) {
  const { startedAt = null, completedAt = null, failedCount = 0 } = fields
  const progressedAt = completedAt ?? startedAt
  return {
    id: randomUUID(),
    name: 'Payroll',
    progressedAt,
    failedAt: failedCount > 0 ? (progressedAt ?? new Date()) : null,
    ...fields,
  }
}

export function payoutRow(fields: Partial<Payout> & { organisation: string; batch: string; contractor: string }) {
  const isPaid = fields.status === 'paid'
  return {
    id: randomUUID(),
    encryptedAmount: 'sealed',
    transfer: fields.status === 'pending' ? randomUUID() : null,
    txHash: isPaid ? 'hash' : null,
    paidAt: isPaid ? new Date() : null,
    ...fields,
  }
}

export function transferRow(fields: Partial<Transfer> = {}) {
  const { createdAt = new Date(), status = 'open', kind = 'transfer', account = 'GPAYER' } = fields
  return {
    id: randomUUID(),
    kind,
    account,
    owner: kind === 'delegated' ? account : null,
    sequenceNumber: 1n,
    recipient: 'GPAYEE',
    bid: 1n,
    quotaDay: createdAt.toISOString().slice(0, 10),
    recordedLedger: 1,
    status,
    hash: status === 'succeeded' || status === 'failed' ? 'hash' : null,
    createdAt,
    settledAt: status === 'open' ? null : createdAt,
    ...fields,
  }
}

export function envelopeRow(fields: Partial<Envelope> & { transfer: string; innerHash: string }) {
  return { bid: 1n, maxTime: 0, ...fields }
}

export function jobRow(fields: Partial<Job> = {}) {
  const { createdAt = new Date(), status = 'running' } = fields
  const endedAt = status === 'running' ? null : createdAt
  return { id: randomUUID(), userKind: 'idp' as const, userSub: 'ada', relayKey: 'key', createdAt, endedAt, ...fields }
}

/** The last ledger of the delegations that the runs of the seed are paid from: far away. */
const LIVE_UNTIL = 100_000_000

export function itemRow(fields: Partial<Item> & { job: string }) {
  const { queuedAt = new Date(), outcome, spender } = fields
  const hasEnded = outcome !== undefined && outcome !== null
  return {
    position: 0,
    quotaAccount: 'idp:ada',
    liveUntil: spender === undefined || spender === null ? null : LIVE_UNTIL,
    sealedAmount: hasEnded ? null : 'sealed',
    hash: outcome === 'paid' ? 'hash' : null,
    queuedAt,
    due: queuedAt,
    settledAt: hasEnded ? queuedAt : null,
    ...fields,
  }
}

/** The rows to insert into each table. */
export interface Rows {
  organisations?: readonly Organisation[]
  identities?: readonly Identity[]
  contractors?: readonly Contractor[]
  batches?: readonly Batch[]
  payouts?: readonly Payout[]
  jobs?: readonly Job[]
  items?: readonly Item[]
  transfers?: readonly Transfer[]
  envelopes?: readonly Envelope[]
}

/** Inserts rows, referenced tables first, and counts the settled transfers. */
export async function insertRows(db: Database, rows: Rows): Promise<void> {
  for (const part of partsOf(rows.organisations ?? [])) await db.insert(organisations).values(part)
  for (const part of partsOf(rows.identities ?? [])) await db.insert(identities).values(part)
  for (const part of partsOf(rows.contractors ?? [])) await db.insert(contractors).values(part)
  for (const part of partsOf(rows.batches ?? [])) await db.insert(batches).values(part)
  for (const part of partsOf(rows.payouts ?? [])) await db.insert(payouts).values(part)
  for (const part of partsOf(rows.jobs ?? [])) await db.insert(relayJobs).values(part)
  for (const part of partsOf(rows.items ?? [])) await db.insert(relayLines).values(part)
  for (const part of partsOf(rows.transfers ?? [])) {
    await countSettled(db, ...(await db.insert(transfers).values(part).returning()))
  }
  for (const part of partsOf(rows.envelopes ?? [])) await db.insert(envelopes).values(part)
}
