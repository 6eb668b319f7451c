import { and, eq, type SQL, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { SPONSOR_REASONS } from '#lib/refusal/refusal.ts'
import { writtenBetween } from './audit.ts'
import { explainRefusal } from './explanation.ts'
import { BY_TIME, having, isOneOf } from './filters.ts'
import { listTable, type RowOf } from './list.ts'
import { TRANSFER_FILTERS } from './transfer-filters.ts'

/** The sponsor's refusals, from the audit log. The list has the same filters as transfers; some of them match no refusal. */
export const REFUSED = listTable({
  filters: { ...TRANSFER_FILTERS, view: isOneOf(['refused']), sort: BY_TIME.sort },
  table: auditLog,
  newest: { sequence: auditLog.sequence },
  conditionOf: async (db, { organisation, contractor, batch, account, reason, ...days }) =>
    and(
      eq(auditLog.action, 'transfer.refused'),
      having(auditLog.organisation, organisation),
      having(auditLog.actorSub, account),
      contractor === '' ? undefined : sql`(${auditLog.detail} ->> 'contractor') = ${contractor}`,
      reason === '' ? undefined : sql`(${auditLog.detail} ->> 'reason') = ${reason}`,
      // The log doesn't name the batch of a refused transfer, and a transfer that was sent fails for other reasons.
      batch === '' && ['', ...Object.keys(SPONSOR_REASONS)].includes(reason) ? undefined : sql`false`,
      await writtenBetween(db, days),
    ),
  select: selectRefusals,
  present: async (_, rows) => rows.map(presentRefusal),
})

function selectRefusals(db: Database, condition: SQL | undefined) {
  return db
    .select({
      sequence: auditLog.sequence,
      createdAt: auditLog.at,
      account: auditLog.actorSub,
      /** hash of the inner transaction, hex */
      innerHash: auditLog.subjectId,
      organisation: auditLog.organisation,
      organisationName: organisations.name,
      detail: auditLog.detail,
    })
    .from(auditLog)
    .leftJoin(organisations, eq(organisations.id, auditLog.organisation))
    .where(condition)
}

export type RefusalLine = ReturnType<typeof presentRefusal>

const presentRefusal = ({ detail, ...line }: RowOf<typeof selectRefusals>) => ({
  ...line,
  /** the code of the reason, and its description */
  reason: String(detail.reason),
  words: explainRefusal(String(detail.reason)),
})
