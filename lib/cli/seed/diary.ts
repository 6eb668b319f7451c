import { type AuditEntry, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'

/** An entry of the audit log, and when it is to have been written. */
export interface DiaryEntry {
  at: Date
  entry: AuditEntry
}

/** Writes the audit log in the order of time: it is read in the order in which it was written. */
export async function recordDiary(db: Database, diary: readonly DiaryEntry[]): Promise<void> {
  const byTime = diary.toSorted((one, other) => one.at.getTime() - other.at.getTime())
  for (const [time, entries] of Map.groupBy(byTime, ({ at }) => at.getTime())) {
    await recordAudit(db, new Date(time), ...entries.map(({ entry }) => entry))
  }
}
