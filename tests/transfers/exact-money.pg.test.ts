import { rpc, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { startService } from '#lib/server/start.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { findEnvelopes } from '#lib/transfers/rows.ts'
import { sponsorTransfer } from '#lib/transfers/submit.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { buildPayment, findBatch, preparePayment } from '../directory/payment.ts'
import { bumpSequence } from '../support/elsewhere.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { quotaOf } from '../support/paid-once.ts'
import { shareService } from '../support/shared-service.ts'
import type { SignedInPayer, TestService } from '../support/test-service.ts'
import {
  afterMaxTime,
  next,
  prepareTransfer,
  sendAnswer,
  standStill,
  withhold,
  withholdAnd,
} from '../support/transfers.ts'
import { bareResult } from './ledger-answers.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let address: string
let stranger: string
beforeAll(async () => {
  service = await shareService('embedded')
  address = (await enrol(service.ledger.network)).signer.publicKey()
  stranger = (await enrol(service.ledger.network)).signer.publicKey()
})
afterAll(() => service?.close())
afterEach(async () => {
  service.ledger.proxy.rule(null)
  expect(await findContradictions(service.db)).toEqual([])
  expect(await findDiscrepancies(service.db)).toEqual([])
})

const refusal = (code: 'txBadSeq' | 'txInsufficientBalance') => sendAnswer('ERROR', bareResult(code))

/** Inner transactions that were applied successfully, alone or inside a fee bump. */
async function applied(hashes: readonly string[]): Promise<string[]> {
  const found = await Promise.all(hashes.map((hash) => service.ledger.network.rpc.getTransaction(hash)))
  return hashes.filter((_, index) => found[index]?.status === 'SUCCESS')
}

const statusesOf = async (employer: Parameters<typeof findBatch>[0], batches: readonly { id: string }[]) =>
  (await Promise.all(batches.map((batch) => findBatch(employer, batch)))).map(({ payouts }) => payouts[0]?.status)

describe('a payout is paid once', () => {
  test('pays once if the network refuses a transfer, the client submits it directly, and a second device posts another', async () => {
    const { wallet, batch, now } = await prepare()
    const payoutId = batch.payouts[0]?.id
    const transfer = { to: address, amount: 5_0000000n, opening: wallet.opening }
    const { hash, signedXdr, next: opening } = await buildTransfer(service.ledger.network, wallet, transfer)
    const post = () => service.post(wallet, { signedXDR: signedXdr })
    service.ledger.proxy.rule(next('sendTransaction', 1_000, { answer: refusal('txInsufficientBalance') }))
    expect(await post()).toMatchObject({ status: 500, body: { code: 'transfer-refused' } })
    expect((await now()).payouts[0]?.status).toBe('pending')
    // Before the service sends it again.
    service.ledger.proxy.rule(withhold)
    await sendAndWait(service.ledger.network, signedXdr)
    service.ledger.proxy.rule(null)
    const second = await buildTransfer(service.ledger.network, wallet, { to: address, amount: 5_0000000n, opening })
    const answer = await service.post(wallet, { signedXDR: second.signedXdr, payoutId })
    expect(answer).toMatchObject({ status: 422, body: { code: 'payout' } })
    expect(await applied([hash, second.hash])).toEqual([hash])
    expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: hash }] })
  })

  test('makes the second device wait, or refuses it, if one of the nodes is ledgers behind', async () => {
    const { wallet, post, hash, batch, now } = await prepare()
    const payoutId = batch.payouts[0]?.id
    const rival = await build(wallet, 6_0000000n)
    const { rewrite } = standStill()
    service.ledger.proxy.rule(({ method, earlier }): Fault => {
      if (method === 'sendTransaction' && earlier === 0) return { answer: refusal('txBadSeq') }
      return method === 'getTransaction' ? { rewrite } : 'pass'
    })
    const first = post()
    await expect.poll(async () => (await service.findTransfer(hash))?.status).toBe('open')
    const second = rival.post({ payoutId })
    // Either the rival is recorded, or the first has applied by now and the rival is refused.
    await Promise.race([second, pause(3_000)])
    service.ledger.proxy.rule(null)
    const answers = await Promise.all([first, second])
    expect(await applied([hash, rival.hash])).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
    const row = await service.findTransfer(hash)
    expect(row).toMatchObject({ status: 'succeeded', payout: payoutId })
    const again = await (row?.applied === hash ? post() : rival.post({ payoutId }))
    expect(again).toMatchObject({ status: 200, body: { hash: row?.hash, status: 'SUCCESS' } })
    expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: row?.hash }] })
  })

  test('does not claim the next batch’s payout for a transfer signed again with the same number and no payoutId', async () => {
    const { wallet, post, hash, employer, batches } = await prepare({ batches: 2 })
    let lost = true
    service.ledger.proxy.rule((call) => (lost ? withhold(call) : 'pass'))
    const first = post()
    await expect.poll(async () => (await service.findTransfer(hash))?.envelope.firstSentAt).toBeInstanceOf(Date)
    const anew = await build(wallet, 6_0000000n)
    const second = anew.post()
    await expect.poll(async () => (await service.findTransfer(anew.hash))?.status).toBe('open')
    lost = false
    const answers = await Promise.all([first, second])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 500])
    expect(answers.find(({ status }) => status === 500)?.body.code).toBe('transfer-replaced')
    expect(await applied([hash, anew.hash])).toHaveLength(1)
    expect(await statusesOf(employer, batches)).toEqual(['paid', 'ready'])
  })

  test('responds 200 to a transfer that the client submitted directly after its first POST failed, and pays its payout', async () => {
    const { post, hash, signedXdr, now } = await prepare()
    service.ledger.proxy.rule(({ method }) => (method === 'simulateTransaction' ? { status: 500 } : 'pass'))
    expect((await post()).status).toBe(500)
    expect(await service.findTransfer(hash)).toBeUndefined()
    service.ledger.proxy.rule(null)
    await sendAndWait(service.ledger.network, signedXdr)
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
    const free = { status: 'succeeded', bid: 0n, feeCharged: 0n, sponsor: null }
    expect(await service.findTransfer(hash)).toMatchObject(free)
    expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: hash }] })
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  })

  test('pays no later payout with a transaction that the client submitted directly', async () => {
    const { wallet, signedXdr, hash, post, employer, payee, batches } = await prepare({ batches: 0 })
    await sendAndWait(service.ledger.network, signedXdr)
    // The time of a ledger is a whole second.
    await pause(1_500)
    const later = await employer.prepare([payee])
    expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
    expect(await statusesOf(employer, [...batches, later])).toEqual(['ready'])
    expect(wallet.address).toBe((await service.findTransfer(hash))?.account)
  })

  test('counts a rival that the client submitted directly as the open transfer, and pays the payout', async () => {
    const { wallet, post, hash, now } = await prepare()
    service.ledger.proxy.rule(withhold)
    const first = post()
    await expect.poll(async () => (await service.findTransfer(hash))?.status).toBe('open')
    const rival = await build(wallet, 6_0000000n)
    await sendAndWait(service.ledger.network, rival.signedXdr)
    const second = await rival.post()
    // The service may see the used number, and fail the payout, before the rival is posted, or after it.
    const row = await service.findTransfer(rival.hash)
    expect(second).toEqual({ status: 200, body: { hash: rival.hash, status: 'SUCCESS' } })
    expect(row).toMatchObject({ status: 'succeeded', applied: rival.hash })
    expect((await first).status).toBe(500)
    expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: rival.hash }] })
  })
})

describe('a client cannot exhaust shared resources', () => {
  test('reserves one bid for 200 variants of one transfer, and looks three up', async () => {
    const employer = await service.employ()
    const opening = { to: address, amount: 1n, opening: employer.opening }
    const first = await buildTransfer(service.ledger.network, employer, opening)
    service.ledger.proxy.rule(withhold)
    const variants = Array.from({ length: 200 }, (_, minTime) => variantOf(employer, first.signedXdr, minTime))
    const before = service.ledger.proxy.calls.get('getTransaction') ?? 0
    const codes: unknown[] = []
    const refused = () => codes.filter((code) => code === 'too-many-envelopes').length
    const asked: Promise<unknown>[] = []
    for (const [index, signedXDR] of variants.entries()) {
      asked.push(service.post(employer, { signedXDR }).then(({ body }) => codes.push(body.code)))
      // The accepted ones, three at most, wait as long as a request does; the others are refused at once.
      if (index % 20 === 19) await expect.poll(refused).toBeGreaterThanOrEqual(index + 1 - 3)
    }
    expect(refused()).toBe(197)
    const own = await quotaOf(service, employer.address)
    expect(own).toMatchObject({ count: 1, used: 0n })
    expect(own?.held).toBeLessThan(5_000_000n)
    // Each of at most three envelopes has two hashes, once per ledger.
    const calls = (service.ledger.proxy.calls.get('getTransaction') ?? 0) - before
    const { latestLedger } = await service.ledger.network.rpc.getHealth()
    const row = await service.db.query.transfers.findFirst({
      where: (table, { eq }) => eq(table.account, employer.address),
    })
    expect(calls).toBeLessThanOrEqual((latestLedger - (row?.recordedLedger ?? latestLedger) + 2) * 12)
    service.ledger.proxy.rule(null)
    if (!row) throw new Error('nothing was recorded')
    expect(await findEnvelopes(service.db, [row.id])).toHaveLength(3)
    const stored = async () => (await service.db.query.transfers.findMany()).find(({ id }) => id === row.id)
    await expect.poll(async () => (await stored())?.status).toBe('succeeded')
    await Promise.all(asked)
  })

  test('refuses a resource fee below the need at no cost', async () => {
    const { employer, signedXdr } = await prepareTransfer(service, address)
    const cheap = changed(employer, signedXdr, (tx) => {
      if (tx.ext.type !== 'sorobanData') throw new Error('no resources')
      const { resources, ext } = tx.ext.sorobanData
      const data = new xdr.SorobanTransactionData({ ext, resources, resourceFee: 1n })
      return { ext: xdr.TransactionExt.sorobanData(data) }
    })
    const error = 'sponsor refused: the declared resource fee is less than the call needs'
    const refused = { status: 422, body: { error, code: 'low-resource-fee' } }
    expect(await service.post(employer, { signedXDR: cheap })).toEqual(refused)
    expect(await quotaOf(service, employer.address)).toBeUndefined()
  })

  test('accepts no resource fee that is too low for the ledger', async () => {
    const { employer, signedXdr } = await prepareTransfer(service, address)
    const needed = await service.ledger.network.rpc.simulateTransaction(
      TransactionBuilder.fromXdr(signedXdr, service.ledger.network.passphrase),
    )
    if (!rpc.Api.isSimulationSuccess(needed)) throw new Error('it cannot be simulated')
    const { resources, ext } = needed.transactionData.build()
    const least = BigInt(needed.minResourceFee) - 1_000n
    const withFee = (resourceFee: bigint) =>
      changed(employer, signedXdr, () => ({
        ext: xdr.TransactionExt.sorobanData(new xdr.SorobanTransactionData({ ext, resources, resourceFee })),
      }))
    expect(await service.post(employer, { signedXDR: withFee(least - 1n) })).toMatchObject({
      status: 422,
      body: { code: 'low-resource-fee' },
    })
    expect(await service.post(employer, { signedXDR: withFee(least) })).toMatchObject({ status: 200 })
  })

  test('refuses a second transfer after bumpSequence while one is open, with the time', async () => {
    const employer = await service.employ()
    const transfer = { to: address, amount: 1n, opening: employer.opening }
    const first = await buildTransfer(service.ledger.network, employer, transfer, { seconds: 60 })
    service.ledger.proxy.rule(withhold)
    void service.post(employer, { signedXDR: first.signedXdr })
    await expect.poll(async () => (await service.findTransfer(first.hash))?.status).toBe('open')
    // The lookups return an old response, so that the used number proves nothing yet.
    const { rewrite, has } = standStill()
    service.ledger.proxy.rule(withholdAnd(rewrite))
    await expect.poll(has).toBe(true)
    await bumpSequence(service.ledger.network, employer.signer)
    const sixth = await buildTransfer(service.ledger.network, employer, transfer)
    const answer = await service.post(employer, { signedXDR: sixth.signedXdr })
    const until = new Date(((await service.findTransfer(first.hash))?.envelope.maxTime ?? 0) * 1000).toISOString()
    const error = `sponsor refused: another transfer of this account is open until ${until}`
    expect(answer).toEqual({ status: 422, body: { error, code: 'another-open' } })
    expect(await quotaOf(service, employer.address)).toMatchObject({ count: 1 })
    service.ledger.proxy.rule(null)
    expect((await service.post(employer, { signedXDR: sixth.signedXdr })).status).toBe(200)
    expect((await service.findTransfer(first.hash))?.status).toBe('expired')
  })

  test('refuses another recipient under the same number', async () => {
    const employer = await service.employ()
    const { opening } = employer
    const first = await buildTransfer(service.ledger.network, employer, { to: address, amount: 1n, opening })
    const other = await buildTransfer(service.ledger.network, employer, { to: stranger, amount: 1n, opening })
    let lost = true
    service.ledger.proxy.rule((call) => (lost ? withhold(call) : 'pass'))
    const waiting = service.post(employer, { signedXDR: first.signedXdr })
    await expect.poll(async () => (await service.findTransfer(first.hash))?.status).toBe('open')
    expect((await service.post(employer, { signedXDR: other.signedXdr })).body.code).toBe('other-recipient')
    lost = false
    expect((await waiting).status).toBe(200)
  })
})

describe('finds the outcome after the RPC or the key has changed', () => {
  test('does not wait for higher ledger numbers after the RPC is restored with lower ones', async () => {
    const shift = { by: 1_000 }
    let isOver = false
    const rule =
      (lose: boolean) =>
      (call: Call): Fault => {
        if (call.method === 'getTransactions') return { status: 500 }
        if (lose && call.method === 'sendTransaction') return { answer: sendAnswer('PENDING') }
        const told =
          isOver && call.method === 'getTransaction' ? afterMaxTime : (answer: Record<string, unknown>) => answer
        return { rewrite: (answer) => shifted(told(answer), shift.by) }
      }
    service.ledger.proxy.rule(rule(false))
    const settled = await prepareTransfer(service, address)
    expect((await settled.post()).status).toBe(200)
    expect((await service.findTransfer(settled.hash))?.ledger).toBeGreaterThan(1_000)
    const lost = await prepareTransfer(service, address)
    service.ledger.proxy.rule(rule(true))
    const waiting = lost.post()
    await expect.poll(async () => (await service.findTransfer(lost.hash))?.status).toBe('open')
    shift.by = 0
    // A refusal based on the account's state is immediate, even if a row has a higher ledger.
    const stale = variantOf(settled.employer, settled.signedXdr, 1)
    const answer = await service.post(settled.employer, { signedXDR: stale })
    expect(answer).toMatchObject({ status: 422, body: { code: 'sequence' } })
    isOver = true
    expect(await waiting).toMatchObject({ status: 500, body: { code: 'transfer-expired' } })
    expect(await service.findTransfer(lost.hash)).toMatchObject({ status: 'expired' })
    service.ledger.proxy.rule(null)
    expect((await (await prepareTransfer(service, address)).post()).status).toBe(200)
  })

  test('ends a transfer without history as unknown: frees its float, leaves its payout to the employer, and stops polling', async () => {
    const { wallet, employer, batch } = await prepare()
    const transfer = { to: address, amount: 5_0000000n, opening: wallet.opening }
    const built = await buildTransfer(service.ledger.network, wallet, transfer)
    let isOver = false
    // It applies, but the RPC shows no ledger of that time any more.
    service.ledger.proxy.rule(({ method }): Fault => {
      if (method === 'getTransactions') return { status: 500 }
      if (method !== 'getTransaction') return 'pass'
      return { rewrite: (found) => forgetful(isOver ? afterMaxTime(found) : found) }
    })
    const posted = service.post(wallet, { signedXDR: built.signedXdr })
    await expect.poll(() => applied([built.hash])).toHaveLength(1)
    isOver = true
    const answer = await posted
    const row = await service.findTransfer(built.hash)
    const hash = row?.envelope.outerHash
    expect(answer).toEqual({ status: 500, body: { error: 'transfer failed', code: 'transfer-unknown', hash } })
    expect(row).toMatchObject({ status: 'unknown', feeCharged: null })
    const floats = await service.db.query.sponsorFloats.findMany()
    expect(floats.map(({ held }) => held)).toEqual([0n])
    expect(await quotaOf(service, wallet.address)).toMatchObject({ held: 0n, used: row?.bid })
    expect(await findBatch(employer, batch)).toMatchObject({
      status: 'started',
      payouts: [{ status: 'pending', error: expect.stringContaining('no longer shows') }],
    })
    await findBatch(employer, batch)
    // Lookups that were in progress when it ended may still be made. Then none follows.
    const lookups = () => service.ledger.proxy.calls.get('getTransaction')
    for (let before: number | undefined; before !== lookups(); await pause(1_500)) before = lookups()
  })

  test('submits again and pays after a wrong txBAD_SEQ from a node that is one ledger behind', async () => {
    const { post, now } = await prepare()
    service.ledger.proxy.rule(next('sendTransaction', 1, { answer: refusal('txBadSeq') }))
    const answer = await post()
    expect(answer.status).toBe(200)
    expect(await now()).toMatchObject({ status: 'completed', payouts: [{ status: 'paid', txHash: answer.body.hash }] })
  })

  test('does not take a wrong txBAD_SEQ for repeated while the next submission has no response yet', async () => {
    const { post } = await prepare()
    let sends = 0
    service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
      if (method !== 'sendTransaction') return 'pass'
      sends += 1
      if (sends === 1) return { answer: refusal('txBadSeq') }
      // The second submission takes several ledgers, and many rounds look at the transfer.
      if (sends === 2) await pause(2_000)
      return 'pass'
    })
    expect((await post()).status).toBe(200)
  })

  test('settles open transfers without SPONSOR_SEED, and responds to requests for them', async () => {
    const { hash, signedXdr } = await prepareTransfer(service, address)
    await service.running.tracker.stop()
    const { tracker, sponsor } = service.running
    const inner = decodeInner(signedXdr, tracker.network.passphrase)
    const asked = sponsorTransfer({ tracker, sponsor, waitMs: 20_000 }, inner)
    const ended = asked.catch((error: unknown) => error)
    await expect.poll(async () => (await service.findTransfer(hash))?.envelope.firstSentAt).toBeInstanceOf(Date)
    const keyless = await startService(
      readEnvironment({ ...service.variables, SPONSOR_SEED: '' }),
      service.database.shared,
    )
    try {
      await expect.poll(async () => (await service.findTransfer(hash))?.status).toBe('succeeded')
      const context = { tracker: keyless.tracker, sponsor: keyless.sponsor, waitMs: 1_000 }
      expect(await sponsorTransfer(context, inner)).toMatchObject({ status: 'SUCCESS' })
      const another = await prepareTransfer(service, address)
      const refused = sponsorTransfer(context, decodeInner(another.signedXdr, tracker.network.passphrase))
      await expect(refused).rejects.toMatchObject({ code: 'sponsor-not-configured' })
      // The tracker of the first request was stopped, so nothing told that request of the outcome.
      expect(await ended).toMatchObject({ code: 'transfer-open' })
    } finally {
      await keyless.close()
      renew()
    }
  })
})

async function prepare({ batches = 1 }: { batches?: number } = {}) {
  const payment = await preparePayment(service, address, { batches: Math.max(1, batches) })
  if (batches === 0) for (const { id } of payment.batches) await payment.employer.ask('DELETE', `/batches/${id}`)
  return { ...payment, batches: batches === 0 ? [] : payment.batches }
}

const build = (wallet: SignedInPayer, amount?: bigint) => buildPayment(service, wallet, address, amount)
const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

/** Gives the service a new tracker, after the old one was stopped. */
function renew(): void {
  const { network, database, now, tracker } = service.running
  Object.assign(tracker, openTracker({ network, database, now }))
}

/** The same transfer with other fields, signed again. */
function changed(
  { signer }: SignedInPayer,
  signedXdr: string,
  change: (tx: xdr.Transaction) => Partial<ConstructorParameters<typeof xdr.Transaction>[0]>,
): string {
  const envelope = xdr.TransactionEnvelope.fromXdr(signedXdr, 'base64')
  if (envelope.type !== 'envelopeTypeTx') throw new Error('not a plain envelope')
  const { tx } = envelope.v1
  const other = new xdr.Transaction({ ...tx, ...change(tx) })
  const unsigned = new xdr.TransactionV1Envelope({ tx: other, signatures: [] })
  const built = TransactionBuilder.fromXdr(
    xdr.TransactionEnvelope.envelopeTypeTx(unsigned).toXdr('base64'),
    service.ledger.network.passphrase,
  )
  built.sign(signer)
  return built.toXdr()
}

function variantOf(employer: SignedInPayer, signedXdr: string, minTime: number): string {
  return changed(employer, signedXdr, ({ cond }) => {
    const maxTime = cond.type === 'precondTime' ? cond.timeBounds.maxTime : 0n
    return { cond: xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: BigInt(minTime), maxTime })) }
  })
}

/** A response with every ledger number shifted. */
function shifted(answer: Record<string, unknown>, by: number): Record<string, unknown> {
  const numbers = ['latestLedger', 'oldestLedger', 'ledger', 'sequence']
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [
      name,
      numbers.includes(name) && typeof value === 'number' ? value + by : value,
    ]),
  )
}

/** A response of an RPC whose history begins with its latest ledger. */
function forgetful(answer: Record<string, unknown>): Record<string, unknown> {
  const { latestLedger, latestLedgerCloseTime } = answer
  return { status: 'NOT_FOUND', latestLedger, latestLedgerCloseTime, oldestLedger: latestLedger }
}
