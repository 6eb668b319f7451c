import { and, eq, inArray, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr, plainText } from '#lib/text/plain-text.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import { batchNotFound, isOwnBatch } from '../batches/batches.ts'
import { lockBatches } from '../batches/progress.ts'
import type { EmployerContext } from '../context.ts'
import { isId } from '../ids.ts'
import { PAYOUT_COLUMNS, payoutShape, presentPayout } from './payouts.ts'

/** The body of POST /batches/{id}/seals. */
export const newSeals = z.object({
  seals: z
    .array(z.object({ payoutId: plainText(100), encryptedAmount: plainText(4096) }, 'must be an object'), {
      error: absentOr('must be a list'),
    })
    .refine((seals) => new Set(seals.map(({ payoutId }) => payoutId)).size === seals.length, {
      error: 'must name each payout once',
    }),
})

export const sealedShape = z.object({ payouts: z.array(payoutShape) })

/** A payout in one of these statuses may be paid by a run. */
export const RUNNABLE = ['ready', 'failed'] as const satisfies PayoutStatus[]

/**
 * Replaces the sealed amounts of payouts, all or none, while no run of the batch is unfinished.
 * @throws Refusal `batch-not-found`, `run-unfinished`, `payout-not-found`, `payout-locked`
 */
export async function replaceSeals(
  { db, employer, now }: EmployerContext,
  { id, seals }: z.output<typeof newSeals> & { id: string },
): Promise<z.input<typeof sealedShape>> {
  if (!isId(id)) throw batchNotFound()
  const ids = seals.map(({ payoutId }) => payoutId)
  return await transactFor(db, employer.organisation, async (tx) => {
    const [batch] = await lockBatches(tx, isOwnBatch(employer, id))
    if (!batch) throw batchNotFound()
    const isRunning = and(eq(relayJobs.batch, id), eq(relayJobs.status, 'running'))
    if ((await tx.$count(relayJobs, isRunning)) > 0) throw new Refusal('run-unfinished')
    const named = await tx
      .select({ id: payouts.id, status: payouts.status })
      .from(payouts)
      .where(and(eq(payouts.batch, id), inArray(payouts.id, ids.filter(isId))))
    const statuses = new Map(named.map(({ id: payout, status }) => [payout, status]))
    const unknown = ids.find((payout) => !statuses.has(payout))
    if (unknown !== undefined) throw new Refusal('payout-not-found', undefined, { details: { payoutId: unknown } })
    const locked = named.find(({ status }) => !isRunnable(status))
    if (locked) throw new Refusal('payout-locked', `payout is ${locked.status}`, { details: { payoutId: locked.id } })
    const replaced = []
    for (const part of partsOf(seals)) {
      const values = sql.join(
        part.map(({ payoutId, encryptedAmount }) => sql`(${payoutId}::uuid, ${encryptedAmount}::text)`),
        sql`, `,
      )
      const updated = await tx
        .update(payouts)
        .set({ encryptedAmount: sql`seals.encrypted_amount` })
        .from(sql`(values ${values}) as seals (payout, encrypted_amount)`)
        .where(and(eq(payouts.batch, id), sql`${payouts.id} = seals.payout`))
        .returning(PAYOUT_COLUMNS)
      replaced.push(...updated)
    }
    const detail = { payouts: replaced.length }
    await recordAudit(tx, now, { ...employer, action: 'batch.sealed', subject: id, detail })
    return { payouts: replaced.map(presentPayout) }
  })
}

const isRunnable = (status: PayoutStatus): boolean => RUNNABLE.some((runnable) => runnable === status)

/**
 * Removes the amounts that are sealed to a relay from payouts that have just been paid or canceled. An amount that only
 * the employer can read stays. Call it in the SQL transaction that moves the payouts.
 */
export async function removeSeals(
  tx: Database,
  moved: readonly { id: string; encryptedAmount: string | null }[],
): Promise<void> {
  const sealed = moved.filter(({ encryptedAmount }) => encryptedAmount !== null && readSeal(encryptedAmount))
  if (sealed.length === 0) return
  const ids = sealed.map(({ id }) => id)
  await tx.update(payouts).set({ encryptedAmount: null }).where(inArray(payouts.id, ids))
}
