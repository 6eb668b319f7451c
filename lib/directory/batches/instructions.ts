import { and, eq, inArray, isNull, sql } from 'drizzle-orm'
import { z } from 'zod'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr, plainText, problemOf, textMessages } from '#lib/text/plain-text.ts'
import type { EmployerContext } from '../context.ts'
import { activateContractors } from '../contractors/activation.ts'
import { isId } from '../ids.ts'
import { PAYOUT_COLUMNS, payoutShape, presentPayout } from '../payouts/payouts.ts'
import type { Employer } from '../users.ts'
import { batchNotFound, isOwnBatch } from './batches.ts'
import { countPayouts, lockBatches } from './progress.ts'

const MAX_LENGTH = 4096
const AMOUNT_MESSAGES = textMessages(MAX_LENGTH)

/** Why an instruction did not become a payout. The other instructions of the request still do. */
const INSTRUCTION_REASONS = [
  'contractor not found',
  'contractor is not ready',
  'contractor already in this batch',
  ...Object.values(AMOUNT_MESSAGES).map((message) => `encryptedAmount ${message}` as const),
] as const
type InstructionReason = (typeof INSTRUCTION_REASONS)[number]

/** Accepts any value: a bad amount is an error of that row only, and the other rows still become payouts. */
const encryptedAmount = z.unknown().optional().meta({
  type: 'string',
  'x-row-error': true,
  description: 'opaque to the service, 1 to 4096 characters; a row without a valid one is an error',
})

/** A 256 KiB body cannot hold more valid instructions, so a longer list is refused before its rows are parsed. */
const MAX_INSTRUCTIONS = 4_000

export const newInstructions = z.object({
  instructions: z.preprocess(
    (list, context) => {
      if (!Array.isArray(list) || list.length <= MAX_INSTRUCTIONS) return list
      context.addIssue(`must have at most ${MAX_INSTRUCTIONS.toLocaleString('en')} items`)
      return z.NEVER
    },
    z.array(z.object({ contractorId: plainText(100), encryptedAmount }, 'must be an object'), {
      error: absentOr('must be a list'),
    }),
  ),
})
type Instruction = z.output<typeof newInstructions>['instructions'][number]

const instructionErrorShape = z.object({ contractorId: z.string(), reason: z.enum(INSTRUCTION_REASONS) })
type InstructionError = z.output<typeof instructionErrorShape>

export const instructedShape = z.object({ payouts: z.array(payoutShape), errors: z.array(instructionErrorShape) })
export type Instructed = z.output<typeof instructedShape>

/**
 * Adds a payout to a batch for each instruction whose contractor is ready and not yet in the batch.
 * @throws Refusal `batch-not-found`, `batch-locked`
 */
export async function instructBatch(
  context: EmployerContext,
  { id, instructions }: { id: string; instructions: readonly Instruction[] },
): Promise<Instructed> {
  if (!isId(id)) throw batchNotFound()
  const { db, employer, now } = context
  const { organisation, actor } = employer
  const ids = instructions.map(({ contractorId }) => contractorId)
  const problems = instructions.map(({ encryptedAmount }) => rejectAmount(encryptedAmount))
  await activateContractors(context, ids)
  return await transactFor(db, organisation, async (tx) => {
    const payees = await lockPayees(tx, employer, ids)
    const [batch] = await lockBatches(tx, isOwnBatch(employer, id))
    if (!batch) throw batchNotFound()
    if (batch.status !== 'draft') throw new Refusal('batch-locked')
    const results = instructions.map((instruction, index) => {
      return { ...instruction, reason: rejectPayee(payees.get(instruction.contractorId)) ?? problems[index] }
    })
    const accepted = results.filter(({ reason }) => reason === undefined)
    const inserted = await insertPayouts(
      tx,
      accepted.map(({ contractorId, encryptedAmount }) => ({
        organisation,
        batch: id,
        contractor: contractorId,
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
    return { payouts: inserted.map(presentPayout), errors: errorsOf(results, inserted) }
  })
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

/** Returns the reason to reject an amount, or undefined. */
function rejectAmount(encryptedAmount: unknown): InstructionReason | undefined {
  const problem = problemOf(encryptedAmount, MAX_LENGTH)
  return problem && `encryptedAmount ${AMOUNT_MESSAGES[problem]}`
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

function errorsOf(
  results: readonly (Instruction & { reason: InstructionReason | undefined })[],
  inserted: readonly { contractorId: string }[],
): InstructionError[] {
  const remaining = new Set(inserted.map(({ contractorId }) => contractorId))
  return results.flatMap(({ contractorId, reason }) => {
    // The first accepted instruction of a contractor became its payout; later ones are duplicates.
    if (reason === undefined && remaining.delete(contractorId)) return []
    return [{ contractorId, reason: reason ?? 'contractor already in this batch' }]
  })
}
