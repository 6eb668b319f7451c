import { type AuditEntry, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { quotaDay, release, reserve } from '#lib/transfers/quota.ts'
import { countRefusal } from '#lib/transfers/refusals.ts'
import { inviteEvents } from './invites.ts'
import { BID, type Records, type SeededTransfer } from './records.ts'
import { envelopeRow, insertRows } from './rows.ts'

/** Inserts all records. The sequence numbers and ledgers of the transfers follow their order in time. */
export async function insertRecords(tx: Database, records: Records, now: Date): Promise<void> {
  const transfers = records.transfers.map((transfer, index) => {
    const ledger = transfer.hash ? 1_000 + index : null
    return { ...transfer, sequenceNumber: BigInt(index + 1), ledger }
  })
  await insertRows(tx, { ...records, transfers, envelopes: records.transfers.map(envelopeOf) })
  await bookQuotas(tx, records.transfers, now)
  // The audit log is read in the order of its inserts.
  const entries = [...Map.groupBy(records.diary, ({ at }) => at.getTime())].map(([time, group]) => {
    const at = new Date(time)
    return {
      at,
      write: (db: Database) =>
        writeEntries(
          db,
          at,
          group.map(({ entry }) => entry),
        ),
    }
  })
  const events = [...entries, ...records.invites.flatMap(inviteEvents)]
  for (const { write } of events.toSorted((one, other) => one.at.getTime() - other.at.getTime())) await write(tx)
}

async function writeEntries(tx: Database, at: Date, entries: readonly AuditEntry[]): Promise<void> {
  await recordAudit(tx, at, ...entries)
  for (const { action, detail } of entries) {
    if (action === 'transfer.refused') await countRefusal(tx, String(detail?.reason))
  }
}

/** The maxTime of open transfers is this far ahead. No ledger has them, so they would otherwise expire. */
const FAR_AHEAD_MS = 365 * 86_400_000

/** The envelope of a transfer, without a signed transaction: there is nothing to submit. */
function envelopeOf({ id = '', innerHash, outerHash, status, createdAt }: SeededTransfer) {
  const maxTime = Math.floor((createdAt.getTime() + (status === 'open' ? FAR_AHEAD_MS : 300_000)) / 1000)
  const sent = { recordedAt: createdAt, firstSentAt: createdAt, lastSentAt: createdAt }
  return envelopeRow({ innerHash, outerHash, transfer: id, bid: BID, maxTime, ...sent })
}

const PLENTY = 10n ** 15n
const LIMITS = { transfersPerAccount: 1_000_000, stroopsPerAccount: PLENTY, dailyBudget: PLENTY, callsBudget: PLENTY }

/** Charges today's transfers to the quotas, and reserves the bids of open ones. */
async function bookQuotas(tx: Database, seeded: readonly SeededTransfer[], now: Date): Promise<void> {
  for (const { kind, account, quotaAccount, quotaDay: day, sponsor, bid, status, feeCharged } of seeded) {
    if (!sponsor || (day !== quotaDay(now) && status !== 'open')) continue
    const claim = { kind, account: quotaAccount ?? account, day, sponsor, bid }
    await reserve(tx, { ...claim, count: 1 }, LIMITS, PLENTY)
    if (status !== 'open') await release(tx, { ...claim, count: 0 }, feeCharged ?? 0n)
  }
}
