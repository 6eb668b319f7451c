import { inArray } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { decodeInner, type SponsorRules } from '#lib/transfers/policy.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'
import { sponsorTransfer } from '#lib/transfers/submit.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { buildPayment, findBatch, preparePayment } from '../directory/payment.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'
import { next, notFound, prepareTransfer, sendAnswer } from '../support/transfers.ts'
import { feeBumpResult } from './ledger-answers.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let payee: string
beforeAll(async () => {
  service = await shareService('embedded')
  payee = (await enrol(service.ledger.network)).signer.publicKey()
})
afterAll(() => service?.close())
afterEach(async () => {
  service.ledger.proxy.rule(null)
  expect(await findContradictions(service.db)).toEqual([])
  expect(await findDiscrepancies(service.db)).toEqual([])
})

/** A transfer that its client has submitted directly. */
async function prepareSubmitted(options: { seconds?: number } = {}) {
  const prepared = await prepareTransfer(service, payee, options)
  await sendAndWait(service.ledger.network, prepared.signedXdr)
  return prepared
}

const failed = {
  status: 500,
  body: { error: 'transfer failed', code: 'unavailable', advice: 'send the same `signedXDR` again' },
}

/** A node that never reaches the transaction's ledger, however often it is polled. */
const lagging = ({ method }: Call): Fault => (method === 'getTransaction' ? { rewrite: notFound } : 'pass')

/** A node that lacks the last minute of ledgers. */
const restored = ({ method }: Call): Fault => {
  if (method !== 'getLedgerEntries' && method !== 'getTransaction') return 'pass'
  return {
    rewrite: (answer) => ({
      ...(method === 'getTransaction' ? notFound(answer) : { entries: [] }),
      latestLedger: Number(answer.latestLedger) - 60,
      latestLedgerCloseTime: String(Math.floor(Date.now() / 1000) - 60),
    }),
  }
}

describe('finds a transaction that a client submitted directly, despite a node that lags', () => {
  test('repeats the lookup after seven responses of such a node, and responds 200', async () => {
    const { hash, post } = await prepareSubmitted()
    service.ledger.proxy.rule(next('getTransaction', 7, { rewrite: notFound }))
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('responds 500 and decides nothing if only such a node responds', async () => {
    const { hash, post } = await prepareSubmitted()
    service.ledger.proxy.rule(lagging)
    expect(await post()).toEqual(failed)
    expect(await service.findTransfer(hash)).toBeUndefined()
    service.ledger.proxy.rule(null)
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('looks up a transaction that is about to expire: 200 after seven responses of such a node', async () => {
    const { hash, post, maxTime } = await prepareSubmitted({ seconds: 13 })
    await expect.poll(() => Date.now() / 1000).toBeGreaterThan(maxTime - 9)
    service.ledger.proxy.rule(next('getTransaction', 7, { rewrite: notFound }))
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('responds 500 until the nodes, restored from a backup without the account, have caught up', async () => {
    const { hash, post } = await prepareSubmitted()
    service.ledger.proxy.rule(restored)
    expect(await post()).toEqual(failed)
    service.ledger.proxy.rule(null)
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('does not trust a response that marks a success as FAILED: 500, then 200 on the next post', async () => {
    const { hash, post } = await prepareSubmitted()
    const untrue = (found: Record<string, unknown>) => ({ ...found, status: 'FAILED' })
    service.ledger.proxy.rule(next('getTransaction', 1, { rewrite: untrue }))
    expect(await post()).toMatchObject({ status: 500 })
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('refuses a transaction that was never submitted after the first recent response', async () => {
    const { post, hash, buildRival } = await prepareTransfer(service, payee)
    await sendAndWait(service.ledger.network, (await buildRival()).signedXdr)
    expect(await post()).toMatchObject({ status: 422, body: { code: 'sequence' } })
    expect(await service.findTransfer(hash)).toBeUndefined()
  })
})

/** Submits a payment to a sponsor that differs in this from the service's. */
async function sponsorWith(changes: Partial<Sponsor>, signedXdr: string, payoutId?: string) {
  const { tracker, sponsor } = service.running
  if (!sponsor) throw new Error('no sponsor')
  const context = { tracker, sponsor: { ...sponsor, ...changes }, waitMs: 30_000 }
  const inner = decodeInner(signedXdr, service.ledger.network.passphrase)
  return await sponsorTransfer(context, inner, payoutId ? { payoutId } : {})
}
const rulesWith = (changes: Partial<SponsorRules>) => {
  return { rules: { ...(service.running.sponsor as Sponsor).rules, ...changes } }
}

describe.each([300, -300])('a service whose clock is off by %i s', (seconds) => {
  const off = () => new Date(Date.now() + seconds * 1000)

  test('accepts a payout as older than its payment if the client has submitted the transaction', async () => {
    const right = Object.getOwnPropertyDescriptor(service.clock, 'now') ?? {}
    Object.defineProperty(service.clock, 'now', { get: off, configurable: true })
    const { batch, signedXdr, hash, now } = await preparePayment(service, payee)
    onTestFinished(() => void Object.defineProperty(service.clock, 'now', right))
    await sendAndWait(service.ledger.network, signedXdr)
    const payoutId = batch.payouts[0]?.id
    expect(await sponsorWith({ now: off }, signedXdr, payoutId)).toEqual({ hash, status: 'SUCCESS' })
    expect((await now()).payouts[0]).toMatchObject({ status: 'paid', txHash: hash })
  })

  test('measures the time bounds and the quota day with the clock of the database', async () => {
    const { hash, signedXdr } = await prepareTransfer(service, payee)
    expect(await sponsorWith({ now: off }, signedXdr)).toMatchObject({ status: 'SUCCESS' })
    const row = await service.findTransfer(hash)
    expect(Math.abs(Date.now() - (row?.createdAt.getTime() ?? 0))).toBeLessThan(200_000)
  })
})

describe.each([
  ['less than its fee', { maxFee: 1n }, 'resource-fee-cap'],
  ['no contract (SPONSOR_CONTRACTS=none)', { contracts: new Set<string>() }, 'contract'],
  ['no function', { functions: new Set<string>() }, 'function'],
] as const)('a sponsor that now pays for %s', (_, changes, reason) => {
  test('records a transaction that the client has submitted directly', async () => {
    const { batch, signedXdr, hash, now } = await preparePayment(service, payee)
    await sendAndWait(service.ledger.network, signedXdr)
    expect(await sponsorWith(rulesWith(changes), signedXdr, batch.payouts[0]?.id)).toEqual({ hash, status: 'SUCCESS' })
    expect((await now()).payouts[0]).toMatchObject({ status: 'paid', txHash: hash })
  })

  test('refuses one that was never submitted', async () => {
    const { signedXdr, hash } = await prepareTransfer(service, payee)
    await expect(sponsorWith(rulesWith(changes), signedXdr)).rejects.toMatchObject({ reason })
    expect(await service.findTransfer(hash)).toBeUndefined()
  })
})

test('does not record a payment in another token as one of the confidential token', async () => {
  const { signedXdr, hash } = await prepareSubmitted()
  const other = rulesWith({ token: undefined, contracts: new Set() })
  await expect(sponsorWith(other, signedXdr)).rejects.toMatchObject({ reason: 'contract' })
  expect(await service.findTransfer(hash)).toBeUndefined()
})

describe('a rival that a client submitted directly pays for the open transfer of its number', () => {
  /** Posts a transfer that stays open, and submits its rival directly to the ledger. */
  async function overtake({ payouts = 1 }: { payouts?: number } = {}) {
    const {
      wallet,
      employer,
      payee: contractor,
      batches,
      ...first
    } = await preparePayment(service, payee, { batches: 2 })
    for (const { id } of batches.slice(payouts)) await employer.ask('DELETE', `/batches/${id}`)
    let row: Awaited<ReturnType<typeof service.findTransfer>>
    let stale: Record<string, unknown> | undefined
    /** the RPC's response for the fee bump of the first transfer, once the test has set one */
    let bumpAnswer: Record<string, unknown> | undefined
    service.ledger.proxy.rule(({ method, params }): Fault => {
      if (method === 'sendTransaction') return { answer: sendAnswer('PENDING') }
      if (method !== 'getTransaction') return 'pass'
      const isBump = params.hash === row?.envelope.outerHash
      if (params.hash !== first.hash && !isBump) return 'pass'
      return {
        rewrite: (found) => {
          if (isBump && bumpAnswer) return { ...found, ...bumpAnswer }
          stale ??= notFound(found)
          return stale
        },
      }
    })
    const waiting = first.post()
    await expect.poll(async () => (await service.findTransfer(first.hash))?.envelope.firstSentAt).toBeInstanceOf(Date)
    row = await service.findTransfer(first.hash)
    await expect.poll(() => stale).toBeDefined()
    const later = payouts === 0 ? await employer.prepare([contractor]) : undefined
    const rival = await buildPayment(service, wallet, payee, 6_0000000n)
    await sendAndWait(service.ledger.network, rival.signedXdr)
    const charge = (answer: Record<string, unknown>) => {
      bumpAnswer = answer
    }
    const now = async (batch = later ?? batches[0]) => (await findBatch(employer, batch ?? { id: '' })).payouts[0]
    return { wallet, waiting, first, rival, row, batches, later, charge, now }
  }

  test('claims, pays and audits the payout that the client names if the transfer has none', async () => {
    const { waiting, rival, later, row, now } = await overtake({ payouts: 0 })
    const payoutId = later?.payouts[0]?.id
    expect(row).toMatchObject({ status: 'open', payout: null })
    expect(await rival.post({ payoutId })).toEqual({ status: 200, body: { hash: rival.hash, status: 'SUCCESS' } })
    expect(await service.findTransfer(rival.hash)).toMatchObject({ id: row?.id, status: 'succeeded', payout: payoutId })
    expect(await now()).toMatchObject({ status: 'paid', txHash: rival.hash })
    expect(await waiting).toMatchObject({ status: 500, body: { code: 'transfer-replaced', hash: rival.hash } })
    const noted = await service.db
      .select()
      .from(auditLog)
      .where(inArray(auditLog.subjectId, [rival.hash, payoutId ?? '']))
      .orderBy(auditLog.sequence)
    expect(noted.map(({ action }) => action)).toEqual([
      'payout.created',
      'payout.readied',
      'transfer.sponsored',
      'payout.paid',
    ])
  })

  test('responds 422 if the client names another payout, but records the payment and pays nothing again', async () => {
    const { waiting, first, rival, batches, now } = await overtake({ payouts: 2 })
    const [own, other] = batches
    const answer = await rival.post({ payoutId: other?.payouts[0]?.id })
    expect(answer).toMatchObject({ status: 422, body: { code: 'payout' } })
    service.ledger.proxy.rule(null)
    expect(await waiting).toMatchObject({ status: 500, body: { code: 'transfer-replaced', hash: rival.hash } })
    expect(await service.findTransfer(first.hash)).toMatchObject({ status: 'succeeded', applied: rival.hash })
    expect(await now(own)).toMatchObject({ status: 'paid', txHash: rival.hash })
    expect(await now(other)).toMatchObject({ status: 'ready' })
    expect(await rival.post()).toEqual({ status: 200, body: { hash: rival.hash, status: 'SUCCESS' } })
  })

  test('accounts for the cost of a failed fee bump of the same transfer', async () => {
    const { wallet, waiting, first, rival, row, charge } = await overtake()
    charge({
      status: 'FAILED',
      ledger: row?.recordedLedger,
      createdAt: String(Math.floor(Date.now() / 1000)),
      envelopeXdr: row?.envelope.signed,
      resultXdr: feeBumpResult(first.hash, 'bad-seq', 87_654n),
    })
    expect(await rival.post()).toMatchObject({ status: 200 })
    await waiting
    expect(await service.findTransfer(first.hash)).toMatchObject({ status: 'succeeded', feeCharged: 87_654n })
    const quotas = await service.db.query.quotas.findMany()
    expect(quotas.find(({ account }) => account === wallet.address)).toMatchObject({
      held: 0n,
      used: 87_654n,
      count: 1,
    })
  })
})
