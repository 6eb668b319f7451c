import { and, eq, inArray, isNull } from 'drizzle-orm'
import { z } from 'zod'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr, plainText, type TextProblem, textMessages } from '#lib/text/plain-text.ts'
import { countPayouts, holdBatches } from './batch-progress.ts'
import { batchNotFound, ownBatch } from './batches.ts'
import { activateContractors } from './contractors/activation.ts'
import type { LedgerContext } from './contractors/registration.ts'
import { isId } from './ids.ts'
import { PAYOUT_COLUMNS, payoutShape, presentPayout } from './payouts/payouts.ts'
import type { Employer, EmployerContext } from './user.ts'

const MOST_CHARACTERS = 4096
const sealedText = plainText('encryptedAmount', MOST_CHARACTERS)
const AMOUNT_REASONS = textMessages('encryptedAmount', MOST_CHARACTERS)

/** Why an instruction did not become a payout; the others of the same request still do. */
const INSTRUCTION_REASONS = [
  'contractor not found',
  'contractor is not ready',
  'contractor already in this batch',
  ...Object.values(AMOUNT_REASONS),
] as const
type InstructionReason = (typeof INSTRUCTION_REASONS)[number]

/** Any value passes here: a bad amount is an error of its own row, and the other rows still become payouts. */
const encryptedAmount = z.unknown().optional().meta({
  type: 'string',
  description: 'opaque to the service, 1 to 4096 characters; without a good one the row is an error',
})

/** No body holds more good instructions than this, so a longer list is refused before its rows are parsed. */
const MOST_INSTRUCTIONS = 4_000

export const newInstructions = z.object({
  instructions: z.preprocess(
    (given, context) => {
      if (!Array.isArray(given) || given.length <= MOST_INSTRUCTIONS) return given
      context.addIssue(`instructions must be at most ${MOST_INSTRUCTIONS.toLocaleString('en')}`)
      return z.NEVER
    },
    z.array(
      z.object({ contractorId: plainText('contractorId', 100), encryptedAmount }, 'instructions must be objects'),
      { error: absentOr('instructions', 'must be a list') },
    ),
  ),
})
type Instruction = z.output<typeof newInstructions>['instructions'][number]

const instructionErrorShape = z.object({ contractorId: z.string(), reason: z.enum(INSTRUCTION_REASONS) })
type InstructionError = z.output<typeof instructionErrorShape>

export const instructedShape = z.object({ payouts: z.array(payoutShape), errors: z.array(instructionErrorShape) })
export type Instructed = z.output<typeof instructedShape>

/**
 * Adds payouts to a batch, one for each instruction that names a contractor who is ready and not in it yet.
 * @throws Refusal `batch-not-found`, `batch-locked`
 */
export async function instructBatch(
  context: EmployerContext & LedgerContext,
  { id, instructions }: { id: string; instructions: readonly Instruction[] },
): Promise<Instructed> {
  if (!isId(id)) throw batchNotFound()
  const { db, employer, now } = context
  const { organisation, actor } = employer
  const named = instructions.map(({ contractorId }) => contractorId)
  const problems = instructions.map(({ encryptedAmount }) => problemOf(encryptedAmount))
  await activateContractors(context, named)
  return await transactFor(db, organisation, async (tx) => {
    const payees = await holdPayees(tx, employer, instructions)
    const [batch] = await holdBatches(tx, ownBatch(employer, id))
    if (!batch) throw batchNotFound()
    if (batch.status !== 'draft') throw new Refusal('batch-locked', 'batch is locked')
    const judged = instructions.map((instruction, index) => {
      return { ...instruction, reason: judge(instruction, payees) ?? problems[index] }
    })
    const accepted = judged.filter(({ reason }) => reason === undefined)
    const made = await insertPayouts(
      tx,
      accepted.map(({ contractorId, encryptedAmount }) => ({
        organisation,
        batch: id,
        contractor: contractorId,
        address: payees.get(contractorId)?.address,
        encryptedAmount: String(encryptedAmount),
        createdAt: now,
      })),
    )
    await countPayouts(tx, [batch], { payouts: made.length }, { actor, now })
    const detail = { payouts: made.length }
    await recordAudit(tx, now, { organisation, actor, action: 'batch.instructed', subject: id, detail })
    return { payouts: made.map(presentPayout), errors: errorsOf(judged, made) }
  })
}

type Payee = Pick<typeof contractors.$inferSelect, 'id' | 'status' | 'address'>

/** Locks the employer's contractors that are named: none is deactivated or removed before its payout exists. */
async function holdPayees(
  tx: Database,
  { organisation }: Employer,
  instructions: readonly Instruction[],
): Promise<Map<string, Payee>> {
  const named = [...new Set(instructions.map(({ contractorId }) => contractorId))].filter(isId)
  if (named.length === 0) return new Map()
  const found = await tx
    .select({ id: contractors.id, status: contractors.status, address: contractors.address })
    .from(contractors)
    .where(
      and(eq(contractors.organisation, organisation), inArray(contractors.id, named), isNull(contractors.deletedAt)),
    )
    .orderBy(contractors.id)
    .for('share')
  return new Map(found.map((payee) => [payee.id, payee]))
}

/** The reason to refuse an amount; undefined if there is none. */
function problemOf(encryptedAmount: unknown): InstructionReason | undefined {
  const { error } = sealedText.safeParse(encryptedAmount)
  if (!error) return undefined
  const [issue] = error.issues
  const problem = issue?.code === 'custom' ? (issue.params?.problem as TextProblem) : 'required'
  return AMOUNT_REASONS[problem]
}

/** The reason to refuse a payee. The unique constraint finds out whether the contractor is in the batch already. */
function judge({ contractorId }: Instruction, payees: ReadonlyMap<string, Payee>): InstructionReason | undefined {
  const payee = payees.get(contractorId)
  if (!payee) return 'contractor not found'
  return payee.status === 'ready' ? undefined : 'contractor is not ready'
}

/**
 * Inserts in the order given, which becomes the order inside the batch. Of two for one contractor the first is
 * inserted.
 */
async function insertPayouts(tx: Database, rows: readonly (typeof payouts.$inferInsert)[]) {
  const made = []
  for (const part of partsOf(rows)) {
    made.push(...(await tx.insert(payouts).values(part).onConflictDoNothing().returning(PAYOUT_COLUMNS)))
  }
  return made
}

function errorsOf(
  judged: readonly (Instruction & { reason: InstructionReason | undefined })[],
  made: readonly { contractor: string }[],
): InstructionError[] {
  const left = new Set(made.map(({ contractor }) => contractor))
  return judged.flatMap(({ contractorId, reason }) => {
    // The first instruction that passed for a contractor made its payout, if one was made.
    if (reason === undefined && left.delete(contractorId)) return []
    return [{ contractorId, reason: reason ?? 'contractor already in this batch' }]
  })
}
