import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import { quotas } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { EVERYBODY } from '#lib/sponsor/quota.ts'
import type { DiaryEntry } from './diary.ts'
import type { SeededOrganisation } from './directory.ts'
import type { Source } from './random.ts'
import { newHashes, type SeededTransfer } from './transfers.ts'

/** Jobs of the relay that have ended, one of them with a failure; resolves to their transfers. */
export async function seedJobs(
  db: Database,
  { account, id: organisation, payees }: SeededOrganisation,
  source: Source,
  now: Date,
): Promise<SeededTransfer[]> {
  const transfers: SeededTransfer[] = []
  for (const hours of [2, 27, 51]) {
    const createdAt = new Date(now.getTime() - hours * 3_600_000)
    const endedAt = new Date(createdAt.getTime() + 21_000)
    const failed = hours === 27 ? 1 : -1
    const id = source.hash().replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5')
    const error = failed < 0 ? null : 'no channel has enough to pay it'
    const jobError = error === null ? null : `transfer ${failed}: ${error}`
    await db.insert(batchJobs).values({
      id,
      userKind: 'ledger',
      userSub: account,
      relayKey: 'seed',
      status: failed < 0 ? 'completed' : 'failed',
      error: jobError,
      createdAt,
      endedAt,
    })
    for (let position = 0; position < 4; position += 1) {
      const { id: transfer, innerHash, outerHash } = newHashes(source)
      const channel = source.address()
      const isFailed = position === failed
      const recipient = payees[position]?.address ?? channel
      const settledAt = new Date(createdAt.getTime() + (position + 1) * 5_000)
      await db.insert(batchItems).values({
        job: id,
        position,
        status: isFailed ? 'failed' : 'paid',
        recipient,
        quotaAccount: account,
        channel: isFailed ? null : channel,
        attempt: 1,
        innerHash: isFailed ? null : innerHash,
        hash: isFailed ? null : outerHash,
        error: isFailed ? error : null,
        queuedAt: createdAt,
        sentAt: isFailed ? null : new Date(settledAt.getTime() - 3_000),
        settledAt,
      })
      if (isFailed) continue
      transfers.push({
        id: transfer,
        innerHash,
        outerHash,
        account: channel,
        recipient,
        organisation,
        quotaAccount: account,
        outcome: 'succeeded',
        createdAt: new Date(settledAt.getTime() - 3_000),
        settledAt,
      })
    }
  }
  return transfers
}

const REASONS = ['expires-too-late', 'memo', 'quota-transfers', 'would-fail', 'expires-too-late', 'function'] as const

/** What the sponsor refused in the last days. */
export function refusalsOf(organisations: readonly SeededOrganisation[], source: Source, now: Date): DiaryEntry[] {
  return REASONS.flatMap((reason, index): DiaryEntry[] => {
    const organisation = organisations[index % organisations.length]
    if (!organisation) return []
    const entry = {
      organisation: organisation.id,
      actor: { kind: 'ledger' as const, sub: organisation.account },
      action: 'transfer.refused' as const,
      subject: { kind: 'transfer' as const, id: source.hash() },
      detail: { reason },
    }
    return [{ at: new Date(now.getTime() - (REASONS.length - index) * 5 * 3_600_000), entry }]
  })
}

/** What the transfers of today used of the quotas. */
export async function seedQuotas(
  db: Database,
  transfers: readonly SeededTransfer[],
  fees: bigint,
  now: Date,
): Promise<void> {
  const day = now.toISOString().slice(0, 10)
  const today = transfers.filter(({ createdAt }) => createdAt.toISOString().startsWith(day))
  const counts = Map.groupBy(today, ({ account, quotaAccount }) => quotaAccount ?? account)
  const average = transfers.length === 0 ? 0n : fees / BigInt(transfers.length)
  const rows = [...counts].map(([account, own]) => ({ account, count: own.length, used: average * BigInt(own.length) }))
  const all = { account: EVERYBODY, count: today.length, used: average * BigInt(today.length) }
  for (const row of [...rows, all])
    await db
      .insert(quotas)
      .values({ ...row, day })
      .onConflictDoNothing()
}
