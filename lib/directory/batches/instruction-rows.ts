import { randomUUID } from 'node:crypto'
import { and, eq, inArray } from 'drizzle-orm'
import { z } from 'zod'
import { payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { EXTERNAL_ID_PROBLEM, externalIdField } from '#lib/text/external-id.ts'
import { absentOr, plainText, problemOf, textMessages } from '#lib/text/plain-text.ts'
import { payoutShape } from '../payouts/payouts.ts'

const MAX_LENGTH = 4096
const AMOUNT_MESSAGES = textMessages(MAX_LENGTH)

const BAD_EXTERNAL_ID = `externalId ${EXTERNAL_ID_PROBLEM}` as const
const SAME_EXTERNAL_ID = 'another payout has this externalId'

/** Why an instruction did not become a payout. The other instructions of the request still do. */
const INSTRUCTION_REASONS = [
  'contractor not found',
  'contractor is not ready',
  'contractor already in this batch',
  ...Object.values(AMOUNT_MESSAGES).map((message) => `encryptedAmount ${message}` as const),
  BAD_EXTERNAL_ID,
  SAME_EXTERNAL_ID,
] as const
export type InstructionReason = (typeof INSTRUCTION_REASONS)[number]

/** Accepts any value: a bad amount is an error of that row only, and the other rows still become payouts. */
const encryptedAmount = z.unknown().optional().meta({
  type: 'string',
  'x-row-error': true,
  description: 'opaque to the service, 1 to 4096 characters; a row without a valid one is an error',
})

const externalId = z
  .unknown()
  .optional()
  .meta({
    ...{ type: 'string', 'x-row-error': true, 'x-extension': true },
    description: 'your own id of the payout, unique in your organisation; a row without a valid one is an error',
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
    z.array(z.object({ contractorId: plainText(100), encryptedAmount, externalId }, 'must be an object'), {
      error: absentOr('must be a list'),
    }),
  ),
})
export type Instruction = z.output<typeof newInstructions>['instructions'][number]

const instructionErrorShape = z.object({ contractorId: z.string(), reason: z.enum(INSTRUCTION_REASONS) })

export const instructedShape = z.object({
  payouts: z.array(payoutShape),
  existing: z.array(z.string()).optional().meta({
    description:
      'if instructions have an `externalId`: the ids of the payouts of this batch that had it already, in their order',
    'x-extension': true,
  }),
  errors: z.array(instructionErrorShape),
})
export type Instructed = z.output<typeof instructedShape>

/** An instruction with the id of its payout, and why it becomes none. */
export interface Order {
  /** counted from 1 */
  row: number
  payout: string
  contractorId: string
  encryptedAmount: unknown
  externalId: string | undefined
  reason: InstructionReason | undefined
}

export function parseInstruction({ contractorId, encryptedAmount, externalId }: Instruction, index: number): Order {
  const isAbsent = externalId === undefined || externalId === null || externalId === ''
  const named = isAbsent ? undefined : externalIdField.safeParse(externalId)
  const problem = problemOf(encryptedAmount, MAX_LENGTH)
  const nameReason = named?.success === false ? BAD_EXTERNAL_ID : undefined
  return {
    ...{ row: index + 1, payout: randomUUID(), contractorId, encryptedAmount, externalId: named?.data },
    reason: problem ? `encryptedAmount ${AMOUNT_MESSAGES[problem]}` : nameReason,
  }
}

/**
 * Why orders became no payouts: payouts of the batch that have their external ids and contractors already, and the reasons of the
 * others. Of several instructions with the same contractor or external id, the first accepted one became its payout.
 */
export async function explainOthers(
  tx: Database,
  { organisation, batch }: { organisation: string; batch: string },
  orders: readonly Order[],
  made: ReadonlySet<string>,
): Promise<{
  existing: string[] | undefined
  errors: { row: number; contractorId: string; reason: InstructionReason }[]
}> {
  const names = orders.flatMap(({ payout, externalId }) => (made.has(payout) ? [] : (externalId ?? [])))
  const { id, externalId: name, contractor } = payouts
  const isNamed = and(eq(payouts.organisation, organisation), inArray(name, names))
  const columns = { id, batch: payouts.batch, contractor, name }
  const rows = names.length === 0 ? [] : await tx.select(columns).from(payouts).where(isNamed)
  const rivals = new Map(rows.map((row) => [row.name, row]))
  const existing = new Set<string>()
  const errors = orders.flatMap(({ row, payout, contractorId, externalId, reason }) => {
    if (made.has(payout)) return []
    const rival = externalId === undefined ? undefined : rivals.get(externalId)
    const isIt = rival && rival.batch === batch && rival.contractor === contractorId
    if (isIt && !made.has(rival.id) && !existing.has(rival.id)) {
      existing.add(rival.id)
      return []
    }
    return [{ row, contractorId, reason: reason ?? (rival ? SAME_EXTERNAL_ID : 'contractor already in this batch') }]
  })
  const isNaming = orders.some(({ externalId }) => externalId !== undefined)
  return { existing: isNaming ? [...existing] : undefined, errors }
}
