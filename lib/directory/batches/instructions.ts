import { and, eq, inArray, isNull, sql } from 'drizzle-orm'
import { batches, contractors, payouts } from '#drizzle/schema/directory.ts'
import type { RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { transactOnce } from '#lib/db/idempotency.ts'
import { partsOf } from '#lib/db/parts.ts'
import { readRows } from '#lib/db/rows.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { EmployerContext } from '../context.ts'
import { activateContractors } from '../contractors/activation.ts'
import { isId } from '../ids.ts'
import { PAYOUT_COLUMNS, presentPayout } from '../payouts/payouts.ts'
import type { Employer } from '../users.ts'
import { batchNotFound, isOwnBatch } from './batches.ts'
import {
  explainOthers,
  type Instructed,
  type Instruction,
  type InstructionReason,
  parseInstruction,
} from './instruction-rows.ts'
import { countPayouts, lockBatches } from './progress.ts'

/**
 * Adds a payout to a batch for each instruction whose contractor is ready and not yet in the batch. Returns the ids of its payouts
 * that have the external id of an instruction already.
 * @throws Refusal `batch-not-found`, `batch-locked`
 */
export async function instructBatch(
  context: EmployerContext,
  { id, instructions }: { id: string; instructions: readonly Instruction[] },
): Promise<Instructed> {
  if (!isId(id)) throw batchNotFound()
  const { employer, now } = context
  const { organisation, actor } = employer
  const orders = instructions.map(parseInstruction)
  const ids = orders.map(({ contractorId }) => contractorId)
  await activateContractors(context, ids)
  const work = async (tx: Database) => {
    const payees = await lockPayees(tx, employer, ids)
    const [batch] = await lockBatches(tx, isOwnBatch(employer, id))
    if (!batch) throw batchNotFound()
    if (batch.status !== 'draft') throw new Refusal('batch-locked')
    const checked = orders.map((order) => ({
      ...order,
      reason: rejectPayee(payees.get(order.contractorId)) ?? order.reason,
    }))
    const inserted = await insertPayouts(
      tx,
      checked
        .filter(({ reason }) => reason === undefined)
        .map(({ payout, contractorId, externalId, encryptedAmount }) => ({
          ...{ id: payout, organisation, batch: id, contractor: contractorId, externalId },
          address: payees.get(contractorId)?.address,
          encryptedAmount: String(encryptedAmount),
        })),
    )
    await countPayouts(tx, [batch], { payouts: inserted.length }, { actor, now })
    const detail = { payouts: inserted.length }
    const created = inserted.map((payout) => {
      return { organisation, actor, action: 'payout.created' as const, subject: payout.id }
    })
    await recordAudit(tx, now, { organisation, actor, action: 'batch.instructed', subject: id, detail }, ...created)
    const made = new Set(inserted.map((payout) => payout.id))
    return { inserted, ...(await explainOthers(tx, { organisation, batch: id }, checked, made)) }
  }
  const refer = ({ inserted, existing, errors }: Awaited<ReturnType<typeof work>>): RecordedOutcome => ({
    ids: inserted.map((payout) => payout.id),
    ...(existing && { existing }),
    errors: errors.map(({ row, reason }) => ({ row, code: reason })),
  })
  const { inserted, existing, errors } = await transactOnce(context, organisation, { work, refer })
  return {
    payouts: inserted.map(presentPayout),
    ...(existing && { existing }),
    errors: errors.map(({ row: _, ...error }) => error),
  }
}

type Payee = Pick<typeof contractors.$inferSelect, 'id' | 'status' | 'address'>

/** Locks the employer's contractors with these ids, so that none is deactivated or removed before its payout exists. */
async function lockPayees(
  tx: Database,
  { organisation }: Employer,
  contractorIds: readonly string[],
): Promise<Map<string, Payee>> {
  const ids = [...new Set(contractorIds)].filter(isId)
  if (ids.length === 0) return new Map()
  const rows = await tx
    .select({ id: contractors.id, status: contractors.status, address: contractors.address })
    .from(contractors)
    .where(and(eq(contractors.organisation, organisation), inArray(contractors.id, ids), isNull(contractors.deletedAt)))
    .orderBy(contractors.id)
    .for('share')
  return new Map(rows.map((payee) => [payee.id, payee]))
}

/** Returns the reason to reject a payee, or undefined. A payee who is already in the batch violates a constraint. */
function rejectPayee(payee: Payee | undefined): InstructionReason | undefined {
  if (!payee) return 'contractor not found'
  return payee.status === 'ready' ? undefined : 'contractor is not ready'
}

/** Inserts payouts in the given order, which becomes their order in the batch. The first of each contractor wins. */
async function insertPayouts(tx: Database, rows: readonly (typeof payouts.$inferInsert)[]) {
  const inserted = []
  for (const part of partsOf(rows)) {
    // The time under the lock of the batch: SQL transactions may begin in another order than they get it.
    const values = part.map((row) => ({ ...row, createdAt: sql`clock_timestamp()` }))
    inserted.push(...(await tx.insert(payouts).values(values).onConflictDoNothing().returning(PAYOUT_COLUMNS)))
  }
  return inserted
}

/**
 * Presents the result of instructions again: the payouts as they are now.
 * @throws Refusal `batch-not-found` if the batch was deleted, and its payouts with it
 */
export async function presentInstructed(
  { db, employer }: EmployerContext,
  { id, instructions }: { id: string; instructions: readonly Instruction[] },
  { ids, existing, errors = [] }: RecordedOutcome,
): Promise<Instructed> {
  const { organisation } = employer
  if (!isId(id) || (await db.$count(batches, isOwnBatch(employer, id))) === 0) throw batchNotFound()
  const isIt = and(eq(payouts.organisation, organisation), inArray(payouts.id, ids))
  const rows = await readRows(db, organisation, (reader) => reader.select(PAYOUT_COLUMNS).from(payouts).where(isIt))
  const present = new Map(rows.map((row) => [row.id, presentPayout(row)]))
  return {
    payouts: ids.flatMap((payout) => present.get(payout) ?? []),
    ...(existing && { existing }),
    errors: errors.map(({ row, code }) => ({
      contractorId: instructions[row - 1]?.contractorId ?? '',
      reason: code as InstructionReason,
    })),
  }
}
