import { xdr } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { mintSession } from '#lib/auth/session.ts'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { sponsorTransfer } from '#lib/transfers/submit.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { prepareOutsideMerge } from '../support/outside-merge.ts'
import { expectSponsoredOnce } from '../support/paid-once.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'
import {
  afterMaxTime,
  beforeFirst,
  countFeeBumps,
  expectSettled,
  next,
  notFound,
  prepareTransfer,
  sendAnswer,
  standStill,
  withhold,
  withholdAnd,
} from '../support/transfers.ts'
import { bareResult } from './ledger-answers.ts'

let service: TestService<'embedded'>
let payee: string
beforeAll(async () => {
  service = await shareService('embedded')
  payee = (await enrol(service.ledger.network)).signer.publicKey()
})
afterAll(() => service.close())
afterEach(() => service.ledger.proxy.rule(null))

const prepare = (options: { seconds?: number } = {}) => prepareTransfer(service, payee, options)

const failed = (code: string, details: object = {}) => ({
  status: 500,
  body: { error: 'transfer failed', code, ...details },
})

/** The hash under which a transaction was sent. */
const sentAs = async (innerHash: string) => ({ hash: (await service.findTransfer(innerHash))?.envelope.outerHash })

test('charges the sponsor the ledger’s fee, bids twice the inner fee, and charges the employer nothing', async () => {
  const { employer, hash, signedXdr, post } = await prepare()
  const before = (await service.ledger.network.rpc.getAccountEntry(employer.address)).balance
  const answer = await post()
  expect(answer).toEqual({ status: 200, body: { hash: expect.stringMatching(/^[0-9a-f]{64}$/), status: 'SUCCESS' } })
  expect((await service.ledger.network.rpc.getAccountEntry(employer.address)).balance).toBe(before)
  const found = await service.ledger.network.rpc.getTransaction(String(answer.body.hash))
  if (found.status !== 'SUCCESS') throw new Error('not on the ledger')
  const inner = xdr.TransactionEnvelope.fromXdr(signedXdr, 'base64')
  expect(await service.findTransfer(hash)).toMatchObject({
    status: 'succeeded',
    hash: answer.body.hash,
    applied: hash,
    envelope: { outerHash: answer.body.hash },
    ledger: found.ledger,
    feeCharged: found.resultXdr.feeCharged,
    bid: 2n * BigInt(inner.type === 'envelopeTypeTx' ? inner.v1.tx.fee : 0),
    recipient: payee,
  })
  await expectSettled(service, employer, hash)
})

test('submits one envelope for ten concurrent posts of one transaction, with ten equal responses', async () => {
  const { employer, hash, post } = await prepare()
  const answers = await Promise.all(Array.from({ length: 10 }, post))
  expect([...new Set(answers.map((answer) => JSON.stringify(answer)))]).toHaveLength(1)
  expect(answers[0]?.status).toBe(200)
  await expectSponsoredOnce(service, employer, hash)
  expect(await post()).toEqual(answers[0])
})

describe('under each failure of the RPC: one payment, and the ledger’s result', () => {
  const faults: [string, () => (call: Call) => Fault][] = [
    ['TRY_AGAIN_LATER twice', () => next('sendTransaction', 2, { answer: sendAnswer('TRY_AGAIN_LATER') })],
    ['DUPLICATE, never delivered', () => next('sendTransaction', 1, { answer: sendAnswer('DUPLICATE') })],
    ['PENDING, then lost', () => next('sendTransaction', 1, { answer: sendAnswer('PENDING') })],
    [
      'delivered, but answered with TRY_AGAIN_LATER',
      () => next('sendTransaction', 1, { rewrite: (sent) => ({ ...sent, status: 'TRY_AGAIN_LATER' }) }),
    ],
    [
      'delivered, but answered with txBAD_SEQ',
      () => next('sendTransaction', 1, { rewrite: () => sendAnswer('ERROR', bareResult('txBadSeq')) }),
    ],
    ['a 500', () => next('sendTransaction', 1, { status: 500 })],
    ['a JSON-RPC error', () => next('sendTransaction', 1, { error: { code: -32603, message: 'busy' } })],
    ['an answer that makes no sense', () => next('sendTransaction', 1, { answer: { status: 'SPLENDID' } })],
    ['a connection dropped before delivery', () => next('sendTransaction', 1, { drop: true, delivered: false })],
    ['a connection dropped after delivery', () => next('sendTransaction', 1, { drop: true, delivered: true })],
    ['a hang before delivery', () => next('sendTransaction', 1, { hang: true, delivered: false })],
    ['a hang after delivery', () => next('sendTransaction', 1, { hang: true, delivered: true })],
    ['NOT_FOUND for some ledgers', () => next('getTransaction', 12, { rewrite: notFound })],
    ['look-ups that fail for a while', () => next('getTransaction', 6, { status: 500 })],
    ['a look-up that hangs', () => next('getTransaction', 1, { hang: true, delivered: false })],
    [
      'look-ups that say the opposite of their result',
      () =>
        next('getTransaction', 12, {
          rewrite: (found) => (found.status === 'SUCCESS' ? { ...found, status: 'FAILED' } : found),
        }),
    ],
  ]
  test.each(faults)('%s', async (_, fault) => {
    const { employer, hash, post } = await prepare()
    service.ledger.proxy.rule(fault())
    expect(await post()).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
    await expectSponsoredOnce(service, employer, hash)
  })
})

test('responds 500 to an ERROR at once, keeps the reservation, and accepts the same transaction again', async () => {
  const { employer, hash, post } = await prepare()
  service.ledger.proxy.rule(
    next('sendTransaction', 1_000, { answer: sendAnswer('ERROR', bareResult('txInsufficientBalance')) }),
  )
  expect(await post()).toEqual(failed('transfer-refused', { ...(await sentAs(hash)), reason: 'txInsufficientBalance' }))
  const refused = { status: 'open', envelope: { resultCode: 'txInsufficientBalance' } }
  expect(await service.findTransfer(hash)).toMatchObject(refused)
  const own = (await service.db.query.quotas.findMany()).find(({ account }) => account === employer.address)
  expect(own?.held).toBe((await service.findTransfer(hash))?.bid)
  service.ledger.proxy.rule(null)
  // The tracker may have submitted it in this ledger, and been refused: it does so once per ledger.
  await service.ledger.devnet.closeLedger()
  expect(await post()).toMatchObject({ status: 200 })
  await expectSponsoredOnce(service, employer, hash)
})

test('responds 200 with the inner hash, at no cost to the sponsor, if the client submits the inner transaction directly', async () => {
  const { employer, hash, signedXdr, post } = await prepare()
  service.ledger.proxy.rule(beforeFirst('sendTransaction', () => sendAndWait(service.ledger.network, signedXdr)))
  expect(await post()).toEqual({ status: 200, body: { hash, status: 'SUCCESS' } })
  expect(await countFeeBumps(service, hash)).toBe(0)
  expect(await service.findTransfer(hash)).toMatchObject({ hash, feeCharged: 0n })
  await expectSettled(service, employer, hash)
})

test('expires a transfer by the ledger’s time, and releases its reservation', async () => {
  const { employer, hash, post } = await prepare()
  service.ledger.proxy.rule(withholdAnd(afterMaxTime))
  expect(await post()).toEqual(failed('transfer-expired', await sentAs(hash)))
  expect(await service.findTransfer(hash)).toMatchObject({ status: 'expired', feeCharged: null })
  await expectSettled(service, employer, hash)
  expect(await post()).toEqual(failed('transfer-expired', await sentAs(hash)))
  expect(await countFeeBumps(service, hash)).toBe(0)
})

test('does not expire a transfer on NOT_FOUND while the ledgers do not pass maxTime', async () => {
  const { employer, hash, signedXdr, post } = await prepare({ seconds: 30 })
  // The RPC hides the transaction, and its latest ledger doesn't change: nothing follows from that, however late it is.
  const { rewrite, has } = standStill()
  service.ledger.proxy.rule(({ method }) => (method === 'getTransaction' ? { rewrite } : 'pass'))
  const { tracker, sponsor, network } = service.running
  const inner = decodeInner(signedXdr, network.passphrase)
  const context = { tracker, sponsor, waitMs: 15_000 }
  const first = sponsorTransfer(context, inner).catch((error: unknown) => error)
  await expect.poll(has).toBe(true)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 })
  try {
    expect(await first).toMatchObject({ code: 'transfer-open', details: await sentAs(hash) })
    await tracker.track([(await service.findTransfer(hash))?.id ?? ''], { waitMs: 60_000, lookUp: 'requested' })
    expect((await service.findTransfer(hash))?.status).toBe('open')
  } finally {
    vi.useRealTimers()
  }
  service.ledger.proxy.rule(null)
  expect(await post()).toMatchObject({ status: 200 })
  await expectSponsoredOnce(service, employer, hash)
})

test('refuses a stale proof before it costs anything', async () => {
  const { employer, hash, post } = await prepare()
  await sendAndWait(service.ledger.network, await prepareOutsideMerge(service.ledger, employer.signer))
  expect(await post()).toEqual({
    status: 422,
    body: { error: 'sponsor refused: the transaction would fail: Error(Contract, #3506)', code: 'would-fail' },
  })
  expect(await service.findTransfer(hash)).toBeUndefined()
})

test('refuses a transfer that does not restore an entry that is archived by now, before it costs anything', async () => {
  const { hash, post } = await prepare()
  service.ledger.proxy.rule(({ method }) => (method === 'simulateTransaction' ? { rewrite: withArchived } : 'pass'))
  expect(await post()).toMatchObject({ status: 422, body: { code: 'too-few-resources' } })
  expect(await service.findTransfer(hash)).toBeUndefined()
})

/** A simulation that marks the first entry which the call writes as archived. */
function withArchived(simulation: Record<string, unknown>): Record<string, unknown> {
  const { resources, resourceFee } = xdr.SorobanTransactionData.fromXdr(String(simulation.transactionData), 'base64')
  const resourceExt = new xdr.SorobanResourcesExtV0({ archivedSorobanEntries: [0] })
  const ext = xdr.SorobanTransactionDataExt.resourceExt(resourceExt)
  const data = new xdr.SorobanTransactionData({ ext, resources, resourceFee })
  return { ...simulation, transactionData: data.toXdr('base64') }
}

test('refuses a used sequence number before it costs anything', async () => {
  const { hash, post, buildRival } = await prepare()
  await sendAndWait(service.ledger.network, (await buildRival()).signedXdr)
  expect(await post()).toEqual({
    status: 422,
    body: { error: 'sponsor refused: the sequence number is not the next one of the account', code: 'sequence' },
  })
  expect(await service.findTransfer(hash)).toBeUndefined()
})

test('answers transfer-replaced at once if a transaction unknown to the service has used the sequence number', async () => {
  const { employer, hash, post, buildRival } = await prepare()
  const rival = await buildRival()
  service.ledger.proxy.rule(beforeFirst('sendTransaction', () => sendAndWait(service.ledger.network, rival.signedXdr)))
  const answer = await post()
  expect(answer).toEqual(failed('transfer-replaced', { ...(await sentAs(hash)), reason: 'unknown-transaction' }))
  expect(await service.findTransfer(hash)).toMatchObject({ status: 'expired', resultCode: 'txBadSeq' })
  expect(await post()).toEqual(answer)
  expect(await countFeeBumps(service, hash)).toBe(0)
  await expectSettled(service, employer, hash)
})

test('responds 500 to a proof that became stale in transit, charges the ledger’s fee, and never submits it again', async () => {
  const { employer, hash, post } = await prepare()
  const merge = await prepareOutsideMerge(service.ledger, employer.signer)
  service.ledger.proxy.rule(beforeFirst('sendTransaction', () => sendAndWait(service.ledger.network, merge)))
  const answer = await post()
  const row = await service.findTransfer(hash)
  expect(answer).toEqual(failed('transfer-failed', { hash: row?.envelope.outerHash }))
  expect(row).toMatchObject({ status: 'failed', resultCode: 'txFailed', contractError: 3506 })
  const found = await service.ledger.network.rpc.getTransaction(row?.hash ?? '')
  expect(row?.feeCharged).toBe(found.status === 'FAILED' ? found.resultXdr.feeCharged : undefined)
  await expectSettled(service, employer, hash)
  expect(await post()).toEqual(answer)
  expect(await countFeeBumps(service, hash)).toBe(1)
})

test('records an outcome once the database is reachable again', async () => {
  const { employer, hash, post } = await prepare()
  let away = false
  const database = async () => {
    if (away) throw new Error('away')
    return await service.running.database()
  }
  const { network, now } = service.running
  const other = openTracker({ network, database, now })
  service.ledger.proxy.rule(withhold)
  const waiting = post()
  await expect.poll(async () => (await service.findTransfer(hash))?.status).toBe('open')
  const row = await service.findTransfer(hash)
  if (!row) throw new Error('no row')
  const told = other.track([row.id], { waitMs: 20_000 })
  away = true
  service.ledger.proxy.rule(null)
  expect(await waiting).toMatchObject({ status: 200 })
  away = false
  expect(await told).toMatchObject([{ kind: 'settled', transfer: { status: 'succeeded', applied: hash } }])
  await other.stop()
  await expectSponsoredOnce(service, employer, hash)
})

test('expires a transfer after its max time, even without history, if its sequence number was never used', async () => {
  const { employer, hash, post } = await prepare()
  const forgetful = (found: Record<string, unknown>) => ({ ...afterMaxTime(found), oldestLedger: found.latestLedger })
  service.ledger.proxy.rule(withholdAnd(forgetful))
  expect(await post()).toEqual(failed('transfer-expired', await sentAs(hash)))
  expect(await service.findTransfer(hash)).toMatchObject({ status: 'expired' })
  await expectSettled(service, employer, hash)
})

test('waits for an RPC that is behind the payer’s last settled ledger', async () => {
  const { employer, hash, next: opening, post } = await prepare()
  expect(await post()).toMatchObject({ status: 200 })
  const settled = (await service.findTransfer(hash))?.ledger ?? 0
  const second = await buildTransfer(service.ledger.network, employer, { to: payee, amount: 1n, opening })
  const stale = { latestLedger: settled - 1, error: 'HostError: Error(Contract, #3506)' }
  service.ledger.proxy.rule(next('simulateTransaction', 2, { answer: stale }))
  expect(await service.post(employer, { signedXDR: second.signedXdr })).toMatchObject({ status: 200 })
})

test.each([
  ['would-fail', () => ({ error: 'HostError: Error(Contract, #3506)' })],
  ['low-resource-fee', (needed: Record<string, unknown>) => ({ ...needed, minResourceFee: '4000000' })],
])('simulates again rather than refuse with %s because of a lagging node', async (_, change) => {
  const { post } = await prepare()
  let stale = 2
  service.ledger.proxy.rule(({ method }): Fault => {
    if (method !== 'simulateTransaction' || stale === 0) return 'pass'
    stale -= 1
    return { rewrite: (needed) => ({ ...change(needed), latestLedger: Number(needed.latestLedger) - 3 }) }
  })
  expect(await post()).toMatchObject({ status: 200 })
  expect(stale).toBe(0)
})

test('refuses no resource fee while the whole RPC is behind the ledger of the client’s simulation', async () => {
  const { post } = await prepare()
  const { sequence: simulated } = await service.ledger.network.rpc.getLatestLedger()
  let old = 0
  service.ledger.proxy.rule(({ method }): Fault => {
    if (old === 2) return 'pass'
    return {
      rewrite: (result) => {
        const latestLedger = Math.min(Number(result.latestLedger) - 5, simulated - 1)
        const latestLedgerCloseTime = String(Number(result.latestLedgerCloseTime) - 1)
        if (method !== 'simulateTransaction') return { ...result, latestLedger, latestLedgerCloseTime }
        old += 1
        // Another payment has paid the rent since.
        return { ...result, latestLedger, minResourceFee: '4000000' }
      },
    }
  })
  expect(await post()).toMatchObject({ status: 200 })
  expect(old).toBe(2)
})

test.each([3, 20])(
  'responds unavailable, not final, if every simulation is from a node %i ledgers behind',
  async (lag) => {
    const { hash, post } = await prepare()
    service.ledger.proxy.rule(({ method }): Fault => {
      if (method !== 'simulateTransaction') return 'pass'
      return {
        rewrite: ({ latestLedger }) => ({
          error: 'HostError: Error(Contract, #3506)',
          latestLedger: Number(latestLedger) - lag,
        }),
      }
    })
    expect(await post()).toEqual(failed('unavailable', { advice: 'send the same `signedXDR` again' }))
    expect(await service.findTransfer(hash)).toBeUndefined()
  },
)

test('tells an idp session that transfers need a wallet', async () => {
  const { employer, signedXdr } = await prepare()
  const identity = { kind: 'idp', sub: employer.address, issuer: 'https://idp.example' } as const
  const session = await mintSession(service.running.settings.sessions, identity, new Date())
  expect(await service.post({ ...employer, session }, { signedXDR: signedXdr })).toEqual({
    status: 501,
    body: { error: 'transfers need a wallet session', code: 'wallet-required' },
  })
})

test('checks the owner of the transaction, then its contents, in the order of the refusals', async () => {
  const { signedXdr, employer } = await prepare()
  const stranger = await service.employ()
  expect(await service.post({ ...stranger, session: 'nonsense' }, {})).toMatchObject({ status: 401 })
  const refusal = (status: number, error: string, code: string) => ({ status, body: { error, code } })
  expect(await service.post(stranger, { signedXDR: signedXdr })).toEqual(
    refusal(403, 'transaction source is not your session account', 'source-mismatch'),
  )
  expect(await service.post(employer, {})).toEqual(refusal(400, 'signedXDR required', 'signed-xdr-required'))
  const missing = refusal(400, 'signedXDR required', 'signed-xdr-invalid')
  for (const signedXDR of [7, null, '', [], {}]) {
    expect(await service.post(employer, { signedXDR })).toEqual(missing)
  }
  const malformed = refusal(400, 'malformed transaction XDR', 'signed-xdr-invalid')
  for (const signedXDR of ['AAAA', signedXdr.slice(0, -8), `${signedXdr}AAAA`, '@@@']) {
    expect(await service.post(employer, { signedXDR })).toEqual(malformed)
  }
})
