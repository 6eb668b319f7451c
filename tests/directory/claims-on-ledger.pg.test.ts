import { xdr } from '@stellar/stellar-sdk'
import { and, eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import type { Instructed } from '#lib/directory/batches/instruction-rows.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { openEmployer } from '../support/fixtures.ts'
import { expectSponsoredOnce } from '../support/paid-once.ts'
import { shareService } from '../support/shared-service.ts'
import type { SignedInPayer, TestService } from '../support/test-service.ts'
import { countFeeBumps, next, notFound, sendAnswer } from '../support/transfers.ts'
import { findContradictions } from './bookkeeping.ts'
import { buildPayment, findBatch, preparePayment } from './payment.ts'

let service: TestService<'embedded'>
let address: string
beforeAll(async () => {
  service = await shareService('embedded')
  address = (await enrol(service.ledger.network)).signer.publicKey()
})
afterAll(() => service.close())

const prepare = (options: { batches?: number } = {}) => preparePayment(service, address, options)
const build = (wallet: SignedInPayer, amount?: bigint) => buildPayment(service, wallet, address, amount)
const find = findBatch

afterEach(async () => {
  service.ledger.proxy.rule(null)
  expect(await findContradictions(service.db)).toEqual([])
})

const result = (code: 'txInsufficientBalance') =>
  new xdr.TransactionResult({
    feeCharged: 100n,
    result: xdr.TransactionResultResult[code](),
    ext: xdr.TransactionResultExt.v0(),
  }).toXdr('base64')

test('marks the payout of a transfer as pending, then as paid with the hash of the response', async () => {
  const { post, now, payee, employer, batch } = await prepare()
  let between: BatchWithPayouts | undefined
  service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method === 'sendTransaction') between ??= await now()
    return 'pass'
  })
  const answer = await post()
  expect(answer).toMatchObject({ status: 200 })
  expect(between).toMatchObject({ status: 'started', settledCount: 0, payouts: [{ status: 'pending', address }] })
  expect(await now()).toMatchObject({
    status: 'completed',
    settledCount: 1,
    completedAt: expect.any(String),
    payouts: [{ status: 'paid', txHash: answer.body.hash, paidAt: expect.any(String) }],
  })
  const [row] = await service.db.select().from(contractors).where(eq(contractors.id, payee.id))
  expect(row?.lastPaidAt?.toISOString()).toBe((await now()).payouts[0]?.paidAt)
  expect(await employer.ask('GET', `/batches/${batch.id}/status`)).toMatchObject({
    body: { status: 'completed', settledCount: 1, failedCount: 0, payoutCount: 1 },
  })
})

test('counts a transfer against the quota that GET /me shows, for each identity of the person', async () => {
  const { post, wallet } = await prepare()
  const joined = await service.sessionOf({ kind: 'idp', sub: `of ${wallet.address}`, issuer: 'https://login.example' })
  const quotaSeenBy = async (session: string) => (await service.ask('GET', '/me', { session })).body.quota
  expect(await quotaSeenBy(joined)).toBeUndefined()
  await service.ask('POST', '/me/identities', { session: wallet.session, body: { session: joined } })
  const before = await quotaSeenBy(wallet.session)
  expect(before).toMatchObject({ transfers: { used: 0, limit: 500 }, stroops: { used: '0' } })
  expect(await post()).toMatchObject({ status: 200 })
  const after = await quotaSeenBy(wallet.session)
  expect(after).toMatchObject({ transfers: { used: 1 }, stroops: { used: expect.stringMatching(/^[1-9]\d+$/) } })
  expect(Date.parse(Object(after).resetsAt) % 86_400_000).toBe(0)
  expect(await quotaSeenBy(joined)).toEqual(after)
})

test('activates contractors who registered since, and none while the ledger is unreachable', async () => {
  const wallet = await service.employ(1n)
  const employer = await openEmployer(service, wallet.address)
  const registered = await employer.engage('registered', { address, status: 'invited' })
  const stranger = await employer.engage('never registered', { status: 'onboarding' })
  const inactive = await employer.engage('inactive', { address: wallet.address, status: 'inactive' })
  const { body: batch } = await employer.ask<BatchWithPayouts>('POST', '/batches', { name: 'who is ready' })
  const instructions = [registered, stranger, inactive].map(({ id }) => ({
    contractorId: id,
    encryptedAmount: 'sealed',
  }))
  const instruct = () => employer.ask<Instructed>('POST', `/batches/${batch.id}/instructions`, { instructions })
  const notReady = (payee: { id: string }) => ({ contractorId: payee.id, reason: 'contractor is not ready' })
  service.ledger.proxy.rule(() => ({ status: 503 }))
  expect((await instruct()).body).toEqual({ payouts: [], errors: [registered, stranger, inactive].map(notReady) })
  service.ledger.proxy.rule(null)
  expect((await instruct()).body).toMatchObject({
    payouts: [{ contractorId: registered.id, address, status: 'draft' }],
    errors: [stranger, inactive].map(notReady),
  })
  const [row] = await service.db.select().from(contractors).where(eq(contractors.id, registered.id))
  expect(row).toMatchObject({ status: 'ready', pvk: expect.stringMatching(/^[0-9a-f]{128}$/) })
})

test('pays one payout for ten concurrent posts of one transfer, with two batches waiting', async () => {
  const { post, employer, batches } = await prepare({ batches: 2 })
  await Promise.all(Array.from({ length: 10 }, () => post()))
  const statuses = await Promise.all(batches.map(async (batch) => (await find(employer, batch)).payouts[0]?.status))
  expect(statuses).toEqual(['paid', 'ready'])
})

test('lets two transfers of one number claim one payout, which the applied one pays', async () => {
  const { wallet, post, hash, employer, batches } = await prepare({ batches: 2 })
  // The same sequence number and balance: the ledger takes one of the two.
  const rival = await build(wallet, 1n)
  const recorded = async () =>
    (await service.findTransfer(hash)) !== undefined && (await service.findTransfer(rival.hash)) !== undefined
  service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method === 'sendTransaction') await expect.poll(recorded).toBe(true)
    return 'pass'
  })
  const answers = await Promise.all([post(), rival.post()])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 500])
  const payouts = (await Promise.all(batches.map((batch) => find(employer, batch)))).flatMap((batch) => batch.payouts)
  expect(payouts.map(({ status }) => status).toSorted()).toEqual(['paid', 'ready'])
  const paid = answers.find(({ status }) => status === 200)?.body.hash
  expect(answers.find(({ status }) => status === 500)?.body).toMatchObject({ code: 'transfer-replaced', hash: paid })
  expect(payouts.find(({ status }) => status === 'paid')?.txHash).toBe(paid)
})

describe('records the ledger’s outcome in the payout despite each failure of the RPC', () => {
  const faults: [string, () => (call: Call) => Fault][] = [
    ['a connection dropped after delivery', () => next('sendTransaction', 1, { drop: true, delivered: true })],
    ['NOT_FOUND for some ledgers', () => next('getTransaction', 12, { rewrite: notFound })],
  ]
  test.each(faults)('%s', async (_, fault) => {
    const { wallet, post, now, hash } = await prepare()
    service.ledger.proxy.rule(fault())
    const answer = await post()
    await expectSponsoredOnce(service, wallet, hash)
    expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: answer.body.hash }] })
  })
})

test('marks the payout as paid with the inner hash if the client submits the inner transaction directly', async () => {
  const { post, now, hash, signedXdr } = await prepare()
  let alone = false
  service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method === 'sendTransaction' && !alone) {
      alone = true
      await sendAndWait(service.ledger.network, signedXdr)
    }
    return 'pass'
  })
  expect(await post()).toMatchObject({ status: 200, body: { hash } })
  expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: hash }] })
})

test('refuses a repeat that names another payout, and returns the one that the transfer pays', async () => {
  const { post, batches, employer } = await prepare({ batches: 2 })
  const [payoutId, other] = batches.map(({ payouts }) => payouts[0]?.id)
  const paid = await post({ payoutId })
  expect(paid).toMatchObject({ status: 200 })
  expect(await post({ payoutId: other })).toEqual({
    status: 422,
    body: {
      error: expect.stringContaining('do not build it again'),
      code: 'payout',
      reason: 'other-payout',
      hash: paid.body.hash,
      status: 'succeeded',
      payoutId,
    },
  })
  const payouts = (await Promise.all(batches.map((batch) => find(employer, batch)))).flatMap((batch) => batch.payouts)
  expect(payouts.map(({ status }) => status)).toEqual(['paid', 'ready'])
  expect(await post({ payoutId })).toEqual(paid)
})

test('lets a repeat claim and settle the payout that it names if the transfer has none and the payout is older', async () => {
  const { post, payee, employer, batch } = await prepare()
  await employer.ask('DELETE', `/batches/${batch.id}`)
  const draft = await employer.prepare([payee], { draft: true })
  const paid = await post()
  expect(paid).toMatchObject({ status: 200 })
  await employer.ask('POST', `/batches/${draft.id}/ready`)
  // The close time of a ledger is a whole second.
  const paidAt = Date.now()
  await expect.poll(() => Date.now()).toBeGreaterThan(paidAt + 2_000)
  const later = await employer.prepare([payee])
  expect(await post({ payoutId: later.payouts[0]?.id })).toMatchObject({
    status: 422,
    body: { code: 'payout', reason: 'newer' },
  })
  expect(await post({ payoutId: draft.payouts[0]?.id })).toEqual(paid)
  expect(await find(employer, draft)).toMatchObject({
    status: 'completed',
    payouts: [{ status: 'paid', txHash: paid.body.hash }],
  })
  expect(await find(employer, later)).toMatchObject({ status: 'ready' })
})

test('keeps the payout pending after an ERROR, and marks it as paid once the network accepts the transfer', async () => {
  const { post, now } = await prepare()
  let refuses = true
  service.ledger.proxy.rule(({ method }) => {
    const error = { answer: sendAnswer('ERROR', result('txInsufficientBalance')) }
    return method === 'sendTransaction' && refuses ? error : 'pass'
  })
  expect(await post()).toMatchObject({ status: 500, body: { code: 'transfer-refused' } })
  expect(await now()).toMatchObject({ status: 'started', failedCount: 0, payouts: [{ status: 'pending' }] })
  refuses = false
  // The tracker may have submitted it in this ledger, and been refused: it does so once per ledger.
  await service.ledger.devnet.closeLedger()
  const answer = await post()
  expect(answer.status).toBe(200)
  expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: answer.body.hash }] })
})

test('marks the payout as paid once, by the applied transfer, after an ERROR and a rival with the same number', async () => {
  const { wallet, post, hash, now } = await prepare()
  const error: Fault = { answer: sendAnswer('ERROR', result('txInsufficientBalance')) }
  let refuses = true
  const isRivalRecorded = Promise.withResolvers<void>()
  service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method !== 'sendTransaction') return 'pass'
    if (refuses) return error
    // Otherwise the first one could be submitted again, and applied, before the rival exists.
    await isRivalRecorded.promise
    return 'pass'
  })
  expect((await post()).status).toBe(500)
  refuses = false
  const rival = await build(wallet, 6_0000000n)
  const posting = rival.post()
  await expect.poll(() => service.findTransfer(rival.hash)).toBeDefined()
  isRivalRecorded.resolve()
  const answer = await posting
  expect([await countFeeBumps(service, hash), await countFeeBumps(service, rival.hash)].toSorted()).toEqual([0, 1])
  const row = await service.findTransfer(rival.hash)
  const isPaidByRival = row?.applied === rival.hash
  expect(answer).toMatchObject(
    isPaidByRival ? { status: 200 } : { status: 500, body: { code: 'transfer-replaced', hash: row?.hash } },
  )
  expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: row?.hash }] })
})

describe('payoutId', () => {
  test('selects the payout that the transfer pays', async () => {
    const { post, employer, batches } = await prepare({ batches: 2 })
    const [first, second] = batches
    expect((await post({ payoutId: second?.payouts[0]?.id })).status).toBe(200)
    expect((await find(employer, first ?? { id: '' })).payouts[0]?.status).toBe('ready')
    expect((await find(employer, second ?? { id: '' })).payouts[0]?.status).toBe('paid')
  })

  test('responds 422 if the payout does not fit, audits it, submits nothing, and accepts the transfer without a payout', async () => {
    const { post, hash, wallet, now } = await prepare()
    const foreign = await prepare()
    expect(await post({ payoutId: foreign.batch.payouts[0]?.id })).toEqual({
      status: 422,
      body: {
        error: expect.stringMatching(/^sponsor refused: the payout does not fit the transfer: the organisation of the/),
        ...{ code: 'payout', reason: 'unknown' },
      },
    })
    expect(await service.findTransfer(hash)).toBeUndefined()
    const entries = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, hash))
    expect(entries).toMatchObject([
      { action: 'transfer.refused', actorKind: 'ledger', actorSub: wallet.address, detail: { reason: 'payout' } },
    ])
    expect(await now()).toMatchObject({ status: 'ready', payouts: [{ status: 'ready' }] })
    expect((await post()).status).toBe(200)
  })

  test.each([7, null, {}, ['x'], true])('responds 400 to the payoutId %j', async (payoutId) => {
    const wallet = { session: await session() } as SignedInPayer
    expect(await service.post(wallet, { signedXDR: 'AAAA', payoutId })).toEqual({
      status: 400,
      body: { error: 'payoutId must be a string', code: 'payout-id-invalid' },
    })
  })

  let any: Promise<SignedInPayer> | undefined
  async function session() {
    any ??= service.employ(1n)
    return (await any).session
  }
})

test('audits a refused sponsorship with only its user, transaction, contractor, reason and request', async () => {
  const { wallet, employer, batch, post, hash } = await prepare()
  await sendAndWait(service.ledger.network, (await build(wallet, 1n)).signedXdr)
  expect((await post()).status).toBe(422)
  const [entry, ...more] = await service.db
    .select()
    .from(auditLog)
    .where(and(eq(auditLog.action, 'transfer.refused'), eq(auditLog.subjectId, hash)))
  expect(more).toEqual([])
  expect(entry).toEqual({
    sequence: expect.any(Number),
    at: expect.any(Date),
    organisation: employer.organisation,
    actorKind: 'ledger',
    actorSub: wallet.address,
    action: 'transfer.refused',
    subjectId: hash,
    requestId: expect.any(String),
    detail: { reason: 'sequence', contractor: batch.payouts[0]?.contractorId },
  })
})

test('audits every step of a payout', async () => {
  const { post, batch, hash } = await prepare()
  await post()
  const subjects = [batch.id, batch.payouts[0]?.id, hash]
  const entries = await service.db.select().from(auditLog).orderBy(auditLog.sequence)
  expect(entries.filter(({ subjectId }) => subjects.includes(subjectId)).map(({ action }) => action)).toEqual([
    'batch.created',
    'batch.instructed',
    'payout.created',
    'batch.locked',
    'payout.readied',
    'batch.started',
    'transfer.sponsored',
    'payout.paid',
    'batch.completed',
  ])
})
