import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { type BatchStatus, batches, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { BATCH_MOVES, PAYOUT_MOVES } from '#lib/directory/batches/progress.ts'
import { type Employer, employerNamed } from '../support/fixtures.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'

let service: TestService
let ada: Employer
let _eve: Employer
beforeAll(async () => {
  service = await shareService()
  ;[ada, _eve] = await Promise.all([employerNamed(service, 'ada'), employerNamed(service, 'eve')])
})
afterAll(() => service.close())

const NOBODY = '00000000-0000-4000-8000-000000000000'
let contractorCount = 0
const engage = () => {
  contractorCount += 1
  return ada.engage(`contractor ${contractorCount}`)
}
const find = async (id: string) => (await ada.ask<BatchWithPayouts>('GET', `/batches/${id}`)).body

/** A payout with this status, and its batch in the matching state. */
async function payoutIn(status: PayoutStatus, fields: Partial<typeof payouts.$inferInsert> = {}) {
  const contractor = await engage()
  const { id, payouts: prepared } = await ada.prepare([contractor], { draft: status === 'draft' })
  const payout = prepared[0]?.id ?? ''
  const isSent = status === 'pending' || status === 'paid' || status === 'failed'
  const paid = status === 'paid' ? { paidAt: new Date(), txHash: 'ab'.repeat(32) } : {}
  const error = status === 'failed' ? { error: 'it failed' } : {}
  const sent = isSent ? { transfer: NOBODY } : {}
  await service.db
    .update(payouts)
    .set({ status, ...sent, ...paid, ...error, ...fields })
    .where(eq(payouts.id, payout))
  if (isSent) {
    const [settledCount, failedCount] = [Number(status === 'paid'), Number(status === 'failed')]
    const batch: BatchStatus = ({ pending: 'started', paid: 'completed', failed: 'failed' } as const)[status]
    const counters = { status: batch, settledCount, failedCount, startedAt: new Date() }
    await service.db.update(batches).set(counters).where(eq(batches.id, id))
  }
  return { contractor, batch: id, payout }
}

const cancel = (id: string, by = ada) => by.ask('DELETE', `/payouts/${id}`)
const remove = (id: string, by = ada) => by.ask('DELETE', `/batches/${id}`)

describe('DELETE /payouts/{id}', () => {
  test.each<[PayoutStatus, BatchStatus]>([
    ['draft', 'draft'],
    ['ready', 'ready'],
    ['failed', 'failed'],
  ])('cancels a payout that is %s, and removes it from the counts', async (status, batchStatus) => {
    const { batch, payout } = await payoutIn(status)
    expect(await cancel(payout)).toMatchObject({ status: 200, body: { id: payout } })
    const after = await find(batch)
    expect(after).toMatchObject({ status: batchStatus, payoutCount: 0, settledCount: 0, failedCount: 0 })
    expect(after.payouts).toMatchObject([{ id: payout, status: 'canceled' }])
    expect(after.payouts[0]).not.toHaveProperty('error')
    const entries = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, payout))
    expect(entries.map(({ action }) => action)).toEqual([
      'payout.created',
      ...(status === 'draft' ? [] : ['payout.readied']),
      'payout.canceled',
    ])
  })

  test('cancels a pending payout whose outcome can no longer be determined', async () => {
    const { batch, payout } = await payoutIn('pending', { error: 'the outcome of the transfer cannot be determined' })
    expect((await cancel(payout)).status).toBe(200)
    expect(await find(batch)).toMatchObject({ status: 'failed', payoutCount: 0, failedCount: 0 })
  })

  test.each<[PayoutStatus, string]>([
    ['pending', 'payout is pending'],
    ['paid', 'payout is paid'],
    ['canceled', 'payout is canceled'],
  ])('responds 409 for a payout that is %s', async (status, error) => {
    const { batch, payout } = await payoutIn(status)
    const before = await find(batch)
    expect(await cancel(payout)).toMatchObject({ status: 409, body: { error } })
    expect(await find(batch)).toEqual(before)
  })

  test.each<['ready' | 'failed', 'started' | 'failed']>([
    ['ready', 'started'],
    ['failed', 'failed'],
  ])('completes the batch if the only unpaid payout is %s and the batch %s', async (status, from) => {
    const [one, two] = [await engage(), await engage()]
    const { id, payouts: prepared } = await ada.prepare([one, two])
    const paid = { status: 'paid' as const, transfer: NOBODY, txHash: 'ab'.repeat(32), paidAt: new Date() }
    const failed = { status: 'failed' as const, transfer: NOBODY, error: 'it failed' }
    const [first = '', second = ''] = prepared.map((payout) => payout.id)
    await service.db.update(payouts).set(paid).where(eq(payouts.id, first))
    if (status === 'failed') await service.db.update(payouts).set(failed).where(eq(payouts.id, second))
    const counters = { status: from, settledCount: 1, failedCount: Number(status === 'failed'), startedAt: new Date() }
    await service.db.update(batches).set(counters).where(eq(batches.id, id))
    expect((await cancel(second)).status).toBe(200)
    expect(await find(id)).toMatchObject({ status: 'completed', payoutCount: 1, settledCount: 1, failedCount: 0 })
    expect(BATCH_MOVES[from]).toContain('completed')
  })

  test('cancels the payout once for twenty concurrent requests', async () => {
    const { batch, payout } = await payoutIn('ready')
    const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(payout)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array<number>(19).fill(409)])
    expect((await find(batch)).payoutCount).toBe(0)
  })

  test('allows only moves to canceled that are in the table of moves', () => {
    const from = Object.entries(PAYOUT_MOVES).filter(([, to]) => (to as readonly string[]).includes('canceled'))
    expect(from.map(([status]) => status).toSorted()).toEqual(['draft', 'failed', 'pending', 'ready'])
  })
})

describe('a contractor whose payout was canceled', () => {
  test('can be instructed again, once, while the batch is a draft', async () => {
    const { contractor, batch, payout } = await payoutIn('draft')
    await cancel(payout)
    const instructions = [1, 2].map((n) => ({ contractorId: contractor.id, encryptedAmount: `sealed ${n}` }))
    const { body } = await ada.ask<{ errors: unknown[] }>('POST', `/batches/${batch}/instructions`, { instructions })
    expect(body.errors).toEqual([{ contractorId: contractor.id, reason: 'contractor already in this batch' }])
    const after = await find(batch)
    expect(after.payoutCount).toBe(1)
    expect(after.payouts.map(({ status }) => status)).toEqual(['canceled', 'draft'])
  })
})

describe('DELETE /batches/{id}', () => {
  test.each([true, false])('removes a batch without sent payouts, and its payouts (draft: %s)', async (draft) => {
    const [one, two] = [await engage(), await engage()]
    const { id } = await ada.prepare([one, two], { draft })
    expect(await remove(id)).toMatchObject({ status: 200, body: { id } })
    expect((await ada.ask('GET', `/batches/${id}`)).status).toBe(404)
    expect(await service.db.select().from(payouts).where(eq(payouts.batch, id))).toEqual([])
    const entries = await service.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.subjectId, id))
      .orderBy(auditLog.sequence)
    expect(entries.at(-1)).toMatchObject({ action: 'batch.removed', detail: { payouts: 2 } })
    expect((await remove(id)).status).toBe(404)
  })

  test.each<PayoutStatus>(['pending', 'paid', 'failed'])(
    'responds 409 for a batch with a %s payout',
    async (status) => {
      const { batch } = await payoutIn(status)
      const before = await find(batch)
      expect(await remove(batch)).toMatchObject({
        status: 409,
        body: { error: 'a payout of this batch has been sent' },
      })
      expect(await find(batch)).toEqual(before)
    },
  )

  test('refuses a batch whose payout failed and was canceled afterwards', async () => {
    const { batch, payout } = await payoutIn('failed')
    await cancel(payout)
    expect((await remove(batch)).status).toBe(409)
  })
})
