import { open } from 'node:fs/promises'
import { and, asc, gt, inArray, lt, lte, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { events } from '#drizzle/schema/events.ts'
import { recordAudit } from './audit-log.ts'
import { firstBeyond } from './audit-sequence.ts'
import { type Database, transact } from './connection.ts'
import { readInParts } from './keyset.ts'
import { readOnly } from './read-only.ts'

const PART = 1_000
/** Entries that one SQL transaction deletes: no other entry can be written in the meantime. */
const DELETED_AT_ONCE = 10_000

/**
 * Writes the entries before a moment to a new file, one JSON object per line, oldest first, and syncs it to disk.
 * @returns how many entries it wrote, and the sequence of the last one; 0 if there is none
 * @throws the error of the file system, EEXIST if the file exists
 */
export async function exportAudit(
  db: Database,
  { before, path }: { before: Date; path: string },
): Promise<{ count: number; last: number }> {
  const reader = readOnly(db)
  const beyond = await firstBeyond(reader, before)
  const file = await open(path, 'wx', 0o600)
  let [count, last] = [0, 0]
  try {
    const read = (previous: typeof auditLog.$inferSelect | undefined) =>
      reader
        .select()
        .from(auditLog)
        .where(
          and(
            lt(auditLog.at, before),
            lt(auditLog.sequence, beyond),
            previous && gt(auditLog.sequence, previous.sequence),
          ),
        )
        .orderBy(asc(auditLog.sequence))
        .limit(PART)
    for await (const entries of readInParts(read, PART)) {
      await file.appendFile(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
      count += entries.length
      last = entries.at(-1)?.sequence ?? last
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return { count, last }
}

/**
 * Deletes the exported entries. Each part is recorded in the SQL transaction that deletes it. Only the owner of the table
 * can do this: it turns off the trigger that refuses deletions, inside transactions that lock the table.
 * @param last the sequence of the last exported entry
 */
export async function dropAudit(
  db: Database,
  { before, last, actor, now }: { before: Date; last: number; actor: string; now: Date },
): Promise<number> {
  const isExported = and(lt(auditLog.at, before), lte(auditLog.sequence, last))
  let count = 0
  for (;;) {
    const deleted = await transact(db, async (tx) => {
      await tx.execute(sql`ALTER TABLE ${auditLog} DISABLE TRIGGER audit_log_append_only`)
      const part = tx
        .select({ sequence: auditLog.sequence })
        .from(auditLog)
        .where(isExported)
        .orderBy(asc(auditLog.sequence))
        .limit(DELETED_AT_ONCE)
      const dropped = await tx
        .delete(auditLog)
        .where(inArray(auditLog.sequence, part))
        .returning({ sequence: auditLog.sequence })
      const { length } = dropped
      await tx.execute(sql`ALTER TABLE ${auditLog} ENABLE TRIGGER audit_log_append_only`)
      if (length === 0) return length
      // The events of these entries go with them.
      const sequences = dropped.map(({ sequence }) => sequence)
      await tx.delete(events).where(inArray(events.entry, sequences))
      await recordAudit(tx, now, {
        organisation: undefined,
        actor: { kind: 'operator', sub: actor },
        action: 'audit.dropped',
        subject: before.toISOString().slice(0, 7),
        detail: { entries: length },
      })
      return length
    })
    count += deleted
    if (deleted < DELETED_AT_ONCE) return count
  }
}
