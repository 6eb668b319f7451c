import { eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { identityRow, insertRows } from '#lib/cli/seed/rows.ts'
import { transact } from '#lib/db/connection.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { UNFIT } from '#lib/directory/payouts/unfit.ts'
import type { Decision, LedgerRecord } from '#lib/transfers/decide.ts'
import { findEnvelopes, type Transfer } from '#lib/transfers/rows.ts'
import { settlePayout } from '#lib/transfers/settle.ts'
import { type Employer, employerNamed } from '../support/fixtures.ts'
import { pair } from '../support/inner-transaction.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'
import { limits, PLENTY, recordNamed, settleNamed, transferNamed } from '../transfers/quota-cases.ts'
import { readQuotas } from '../transfers/quota-ledger.ts'
import { FAILURE, SUCCESS } from '../transfers/records.ts'
import { findContradictions } from './bookkeeping.ts'
import { CLAIM_CASES } from './claim-cases.ts'

const NOW = new Date('2026-05-01T12:00:00Z')
let service: TestService
let count = 0
beforeAll(async () => {
  service = await shareService()
})
afterAll(() => service.close())
afterEach(async () => {
  expect(await findContradictions(service.db)).toEqual([])
})

const employ = () => employerNamed(service, `employer ${++count}`)
const accountOf = (employer: Employer) => employer.identity.sub
const find = async (employer: Employer, { id }: { id: string }) =>
  (await employer.ask<BatchWithPayouts>('GET', `/batches/${id}`)).body

/** Records a transfer from an employer's wallet to an address, as the sponsor does. */
async function record(
  employer: Employer,
  payee: { address: string },
  { payoutId, account }: { payoutId?: string | undefined; account?: string } = {},
): Promise<Transfer> {
  count += 1
  const name = `transfer ${count}`
  // Each uses a new wallet unless one is given, because an account can have only one open transfer.
  const wallet = account ?? (await addWallet(employer, name))
  const transfer = transferNamed(name, { account: wallet, recipient: payee.address, createdAt: NOW })
  return (await recordNamed(service.db, transfer, limits, PLENTY, { payoutId })).transfer
}

async function addWallet({ organisation }: Employer, name: string): Promise<string> {
  const sub = pair(`wallet of ${name}`).publicKey()
  await insertRows(service.db, { identities: [identityRow({ sub, organisation })] })
  return sub
}

async function settle({ id }: Transfer, how: LedgerRecord | Decision | null, now = NOW): Promise<Transfer> {
  const [envelope] = await findEnvelopes(service.db, [id])
  const innerHash = envelope?.innerHash ?? ''
  const record = how && 'hash' in how ? { ...how, hash: `${how.hash.slice(0, 32)}${innerHash.slice(0, 32)}` } : how
  return await settleNamed(service.db, innerHash, record, now)
}

describe('a transfer pays', () => {
  test('the oldest ready payout, batch after batch, and is sponsored even if there is none', async () => {
    const ada = await employ()
    const [payee, other] = [await ada.engage('payee'), await ada.engage('other')]
    const batches = [await ada.prepare([other, payee]), await ada.prepare([payee]), await ada.prepare([payee])]
    const claimed = []
    for (let round = 0; round < 4; round += 1) claimed.push((await record(ada, payee)).payout)
    expect(claimed).toEqual([batches[0]?.payouts[1]?.id, batches[1]?.payouts[0]?.id, batches[2]?.payouts[0]?.id, null])
  })

  test('no payout of a batch that is not locked', async () => {
    const ada = await employ()
    const payee = await ada.engage('payee')
    await ada.prepare([payee], { draft: true })
    expect((await record(ada, payee)).payout).toBeNull()
  })

  test('no payout of another organisation that pays the same address', async () => {
    const [ada, eve] = [await employ(), await employ()]
    const payee = await ada.engage('payee')
    const same = await eve.engage('the same person', { address: payee.address })
    const batch = await ada.prepare([payee])
    expect((await record(eve, same)).payout).toBeNull()
    expect((await record(ada, payee)).payout).toBe(batch.payouts[0]?.id)
  })

  test('a payout by its address at creation, not by the contractor’s current address', async () => {
    const ada = await employ()
    const payee = await ada.engage('payee')
    const batch = await ada.prepare([payee])
    const moved = pair('moved').publicKey()
    await service.db.update(contractors).set({ address: moved }).where(eq(contractors.id, payee.id))
    expect((await record(ada, { address: moved })).payout).toBeNull()
    expect((await record(ada, payee)).payout).toBe(batch.payouts[0]?.id)
  })

  test('a ready payout before any failed one, and the newest of the failed ones', async () => {
    const ada = await employ()
    const payee = await ada.engage('payee')
    const failed = [await ada.prepare([payee]), await ada.prepare([payee])]
    for (const _ of failed) await settle(await record(ada, payee), FAILURE)
    const ready = await ada.prepare([payee])
    const claimed = []
    for (let round = 0; round < 4; round += 1) claimed.push((await record(ada, payee)).payout)
    expect(claimed).toEqual([ready, failed[1], failed[0]].map((batch) => batch?.payouts[0]?.id).concat(null as never))
  })

  test('payouts of its wallet’s organisation only', async () => {
    const ada = await employ()
    const payee = await ada.engage('payee')
    await ada.prepare([payee])
    const colleague = pair(`colleague ${count}`).publicKey()
    const foreign = await record(ada, payee, { account: colleague })
    expect(foreign).toMatchObject({ payout: null, organisation: null })
    await settle(foreign, null)
    await insertRows(service.db, { identities: [identityRow({ sub: colleague, organisation: ada.organisation })] })
    const transfer = await record(ada, payee, { account: colleague })
    expect(transfer).toMatchObject({ payout: expect.any(String), organisation: ada.organisation })
  })
})

describe('a payout that the client names', () => {
  test('is claimed even if an older one is ready, or if it failed and another is ready', async () => {
    const ada = await employ()
    const payee = await ada.engage('payee')
    const [, second] = [await ada.prepare([payee]), await ada.prepare([payee])]
    const payoutId = second?.payouts[0]?.id
    const first = await record(ada, payee, { payoutId })
    expect(first.payout).toBe(payoutId)
    await settle(first, FAILURE)
    expect((await record(ada, payee, { payoutId })).payout).toBe(payoutId)
  })

  test.each(CLAIM_CASES)('is refused without storing anything if it is $name', async ({ name, why }) => {
    const [ada, eve] = [await employ(), await employ()]
    const payee = await ada.engage('payee')
    const id = (batch: BatchWithPayouts) => batch.payouts[0]?.id ?? ''
    const payoutIds: Record<(typeof CLAIM_CASES)[number]['name'], () => Promise<string>> = {
      unknown: async () => '00000000-0000-4000-8000-000000000000',
      'no id': async () => "' OR true --",
      'an empty string': async () => '',
      'of another organisation': async () =>
        id(await eve.prepare([await eve.engage('same', { address: payee.address })])),
      'of a draft': async () => id(await ada.prepare([payee], { draft: true })),
      'for another address': async () => id(await ada.prepare([await ada.engage('other')])),
      pending: async () => {
        const batch = await ada.prepare([payee])
        await record(ada, payee)
        return id(batch)
      },
      paid: async () => {
        const batch = await ada.prepare([payee])
        await settle(await record(ada, payee), SUCCESS)
        return id(batch)
      },
      canceled: async () => {
        const batch = await ada.prepare([payee])
        await service.db.execute(sql`UPDATE payouts SET status = 'canceled' WHERE batch = ${batch.id}`)
        await service.db.execute(sql`UPDATE batches SET payout_count = 0 WHERE id = ${batch.id}`)
        return id(batch)
      },
    }
    const payoutId = await payoutIds[name]()
    const before = await snapshot()
    const paidBy = why === 'already-paid' ? { hash: expect.any(String) } : {}
    await expect(record(ada, payee, { payoutId })).rejects.toMatchObject({
      reason: 'payout',
      message: expect.stringContaining(UNFIT[why]),
      details: { reason: why, ...paidBy },
    })
    expect(await snapshot()).toEqual(before)
  })

  async function snapshot() {
    const tables = [service.db.select().from(payouts).orderBy(payouts.id), service.db.select().from(transfers)]
    const log = service.db
      .execute(sql`SELECT count(*) FROM audit_log`)
      .then((result) => (result as { rows?: unknown }).rows)
    return [...(await Promise.all(tables)), await readQuotas(service.db), await log]
  }

  test('is not found for a wallet without an organisation', async () => {
    const ada = await employ()
    const payee = await ada.engage('payee')
    const batch = await ada.prepare([payee])
    const account = pair('a wallet from elsewhere').publicKey()
    const refused = record(ada, payee, { payoutId: batch.payouts[0]?.id, account })
    await expect(refused).rejects.toMatchObject({ reason: 'payout', details: { reason: 'unknown' } })
  })
})

test('is claimed once when twenty transfers compete for five payouts, and fifteen pay none', async () => {
  const ada = await employ()
  const payee = await ada.engage('payee')
  const batches = []
  for (let round = 0; round < 5; round += 1) batches.push(await ada.prepare([payee]))
  const transfers = await Promise.all(Array.from({ length: 20 }, () => record(ada, payee)))
  const claimed = transfers.flatMap(({ payout }) => payout ?? [])
  expect(claimed.toSorted()).toEqual(batches.map((batch) => batch.payouts[0]?.id ?? '').toSorted())
})

test('is claimed by one of twenty concurrent transfers that name it, and the others are refused', async () => {
  const ada = await employ()
  const payee = await ada.engage('payee')
  const payoutId = (await ada.prepare([payee])).payouts[0]?.id
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => record(ada, payee, { payoutId })))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ reason: 'payout' })
  }
})

test('is not claimed again when the same transfer is recorded again', async () => {
  const ada = await employ()
  const payee = await ada.engage('payee')
  await ada.prepare([payee])
  await ada.prepare([payee])
  const transfer = transferNamed('again and again', { account: accountOf(ada), recipient: payee.address })
  const records = await Promise.all(Array.from({ length: 8 }, () => recordNamed(service.db, transfer, limits, PLENTY)))
  expect(new Set(records.map((each) => each.transfer.payout)).size).toBe(1)
  const pending = await service.db.select().from(payouts).where(eq(payouts.organisation, ada.organisation))
  expect(pending.map(({ status }) => status).toSorted()).toEqual(['pending', 'ready'])
})

describe('a claimed payout', () => {
  async function setUp(payees = 1) {
    const ada = await employ()
    const all = []
    for (let index = 0; index < payees; index += 1) all.push(await ada.engage(`payee ${index}`))
    const [payee, other] = all
    if (!payee) throw new Error('no payee')
    const batch = await ada.prepare(all)
    const now = () => find(ada, batch)
    return { ada, payee, other: other ?? payee, batch, now }
  }

  test('becomes pending, then paid, which starts and completes the batch and marks the contractor as paid', async () => {
    const { ada, payee, other, now } = await setUp(2)
    const one = await record(ada, payee)
    expect(await now()).toMatchObject({
      status: 'started',
      startedAt: NOW.toISOString(),
      payouts: [{ status: 'pending' }, { status: 'ready' }],
    })
    const later = new Date(NOW.getTime() + 5_000)
    const settled = await settle(one, SUCCESS, later)
    const half = await now()
    const startedAt = NOW.toISOString()
    expect(half).toMatchObject({ status: 'started', startedAt, settledCount: 1, failedCount: 0, payoutCount: 2 })
    expect(half.payouts[0]).toMatchObject({ status: 'paid', txHash: settled.hash, paidAt: later.toISOString() })
    expect(half).not.toHaveProperty('completedAt')
    const end = new Date(NOW.getTime() + 9_000)
    await settle(await record(ada, other), SUCCESS, end)
    expect(await now()).toMatchObject({
      status: 'completed',
      startedAt,
      settledCount: 2,
      completedAt: end.toISOString(),
    })
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, payee.id))
    expect(row?.lastPaidAt).toEqual(later)
  })

  test.each([
    ['failed on the ledger', FAILURE, 'the transfer failed on the ledger: txFailed, contract error 3506'],
    ['expired', null, 'the transfer expired before it reached the ledger'],
    [
      'replaced by an unknown transaction',
      { status: 'expired', resultCode: 'txBadSeq' },
      'another transaction of this account was applied: check whether it paid',
    ],
  ] satisfies [string, LedgerRecord | Decision | null, string][])(
    'fails with an error if %s, and becomes pending without one when resent',
    async (_, how, error) => {
      const { ada, payee, now } = await setUp()
      await settle(await record(ada, payee), how)
      const failed = await now()
      expect(failed).toMatchObject({
        status: 'failed',
        failedCount: 1,
        settledCount: 0,
        payouts: [{ status: 'failed', error }],
      })
      expect(failed).not.toHaveProperty('completedAt')
      const again = await record(ada, payee)
      const started = await now()
      expect(started).toMatchObject({ status: 'started', failedCount: 0, startedAt: failed.startedAt })
      expect(started.payouts[0]).toMatchObject({ status: 'pending' })
      expect(started.payouts[0]).not.toHaveProperty('error')
      await settle(again, SUCCESS)
      expect(await now()).toMatchObject({ status: 'completed', settledCount: 1, failedCount: 0 })
    },
  )

  test('fails without failing its batch until no other payout is waiting', async () => {
    const { ada, payee, other, now } = await setUp(2)
    await settle(await record(ada, payee), FAILURE)
    expect(await now()).toMatchObject({ status: 'started', failedCount: 1 })
    await settle(await record(ada, other), SUCCESS)
    expect(await now()).toMatchObject({ status: 'failed', failedCount: 1, settledCount: 1 })
  })

  test('stays pending with a reason if its transfer ends as unknown, and no other transfer claims it', async () => {
    const { ada, payee, now } = await setUp()
    const { id } = await record(ada, payee)
    const [envelope] = await findEnvelopes(service.db, [id])
    await settleNamed(service.db, envelope?.innerHash ?? '', { status: 'unknown' }, NOW)
    expect(await now()).toMatchObject({
      status: 'started',
      payouts: [{ status: 'pending', error: expect.stringContaining('no longer shows') }],
    })
    expect((await record(ada, payee)).payout).toBeNull()
  })

  test('ignores the end of an earlier transfer once another pays it', async () => {
    const { payee, ada, now } = await setUp()
    const earlier = await record(ada, payee)
    const settled = await settle(earlier, FAILURE)
    const { payout } = await record(ada, payee)
    expect(payout).toBe(earlier.payout)
    expect(await transact(service.db, (tx) => settlePayout(tx, settled, NOW))).toBe(false)
    expect(await now()).toMatchObject({ status: 'started', failedCount: 0, payouts: [{ status: 'pending' }] })
  })

  test('counts once when its transfer is settled twenty times concurrently', async () => {
    const { ada, payee, now } = await setUp(2)
    const transfer = await record(ada, payee)
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => settle(transfer, [SUCCESS, FAILURE, null][index % 3] ?? null)),
    )
    const { settledCount, failedCount } = await now()
    expect(settledCount + failedCount).toBe(1)
  })

  test('keeps the contractor’s last payment when an older one settles', async () => {
    const { ada, payee } = await setUp()
    await ada.prepare([payee])
    const [one, two] = [await record(ada, payee), await record(ada, payee)]
    await settle(two, SUCCESS, new Date(NOW.getTime() + 60_000))
    await settle(one, SUCCESS, NOW)
    const [row] = await service.db.select().from(contractors).where(eq(contractors.id, payee.id))
    expect(row?.lastPaidAt).toEqual(new Date(NOW.getTime() + 60_000))
  })
})
