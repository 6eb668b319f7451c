import { StrKey, xdr } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { type Envelope, envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { lookUpForOperator } from '#lib/server/operator-actions.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { wrapInFeeBump } from '#lib/transfers/fee-bump.ts'
import { noteLookedUp } from '#lib/transfers/look-up.ts'
import { decodeInner, readIntent } from '#lib/transfers/policy.ts'
import { recordTransfer } from '#lib/transfers/record.ts'
import { renewEnvelope } from '#lib/transfers/renew.ts'
import { findTransferOfHash, type RecordedTransfer, type Transfer } from '#lib/transfers/rows.ts'
import { openTracker, type Tracker } from '#lib/transfers/track.ts'
import { cloneDatabase } from '../support/database.ts'
import { accountEntry, presentAccount } from '../support/fake-rpc.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { NOW, PASSPHRASE, rules, signedTransfer, sponsor } from '../support/inner-transaction.ts'
import { sendAnswer } from '../support/transfers.ts'
import { bareResult, feeBumpResult } from './ledger-answers.ts'
import { limits, PLENTY, recordNamed, transferNamed } from './quota-cases.ts'
import { clear, findDiscrepancies } from './quota-ledger.ts'

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
let proxy: FaultProxy
let network: Network
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
  proxy = await startFaultProxy('http://127.0.0.1:1')
})
beforeEach(async () => {
  await clear(db)
  network = openProxied()
})
afterAll(async () => {
  await proxy?.close()
  await clone?.drop()
})

/** The network of a process, which has its own view of the ledger. */
const openProxied = () => openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 20 })

const RECORDED = 100
const APPLIED = 105
/** the sequence number of the transfers */
const SEQUENCE = 4_294_967_297n
const now = new Date(NOW * 1000)

/** The ledger that the RPC shows. A test changes it, and may add faults. */
function openLedger(latest = RECORDED) {
  const ledger = {
    latest,
    /** the last number that the payer has used */
    sequence: SEQUENCE - 1n,
    /** what getTransaction returns, by hash */
    found: new Map<string, Record<string, unknown>>(),
    /** what sendTransaction returns */
    sent: sendAnswer('PENDING') as Record<string, unknown>,
    fault: (_: string, __: Record<string, unknown>): Fault | undefined | Promise<Fault | undefined> => undefined,
    range: () => ({ latestLedger: ledger.latest, latestLedgerCloseTime: NOW + ledger.latest, oldestLedger: 1 }),
  }
  proxy.calls.clear()
  proxy.rule(async ({ method, params }): Promise<Fault> => {
    const fault = await ledger.fault(method, params)
    if (fault) return fault
    if (method === 'sendTransaction') return { answer: ledger.sent }
    if (method === 'getLedgerEntries') {
      const entries = (params.keys as string[]).map((key) => {
        const { account } = xdr.LedgerKey.fromXdr(key, 'base64') as xdr.LedgerKey & { type: 'account' }
        const address = StrKey.encodeEd25519PublicKey(account.accountId.ed25519.toBytes())
        return presentAccount(address, accountEntry(address, { sequence: ledger.sequence }))
      })
      return { answer: { latestLedger: ledger.latest, entries } }
    }
    if (method !== 'getTransaction') return { status: 500 }
    const found = ledger.found.get(String(params.hash))
    return { answer: { ...ledger.range(), ...(found ?? { status: 'NOT_FOUND' }) } }
  })
  return ledger
}

function open(given: { network?: Network; now?: () => Date } = {}): Tracker {
  const tracker = openTracker({ network: openProxied(), database: async () => db, now: () => new Date(), ...given })
  onTestFinished(tracker.stop)
  return tracker
}

const lookUp = (tracker: Tracker, ids: string[], waitMs: number) => tracker.track(ids, { waitMs, lookUp: 'requested' })

const waitFor = async (tracker: Tracker, { id }: Transfer, waitMs: number) => (await tracker.track([id], { waitMs }))[0]

/** Records an envelope as the sponsor does. All have one sequence number; each fee makes another envelope. */
async function record(fee: number) {
  const inner = decodeInner(signedTransfer({ tx: { fee } }), PASSPHRASE)
  const intent = readIntent(inner, rules)
  const bump = wrapInFeeBump(inner, sponsor, PASSPHRASE)
  const given = { bump, sponsor: sponsor.publicKey(), recordedLedger: RECORDED, limits, available: PLENTY }
  await recordTransfer(db, { inner, intent, terms: {}, now }, given)
  const applied = (outcome: 'success' | 'bad-seq', ledger: number, feeCharged: bigint) => ({
    status: outcome === 'success' ? ('SUCCESS' as const) : ('FAILED' as const),
    ledger,
    createdAt: NOW + ledger,
    envelopeXdr: bump.envelope,
    resultXdr: feeBumpResult(inner.hashHex, outcome, feeCharged),
  })
  return { innerHash: inner.hashHex, outerHash: bump.hash, applied, sequence: intent.sequenceNumber }
}

async function find(innerHash: string): Promise<RecordedTransfer> {
  const recorded = await findTransferOfHash(db, innerHash)
  if (!recorded) throw new Error('nothing was recorded')
  return recorded
}

/** Looks a transfer up several times in a row. */
async function lookUpAgain(tracker: Tracker, innerHash: string, times = 3): Promise<void> {
  const { id } = (await find(innerHash)).transfer
  for (let round = 0; round < times; round += 1) await lookUp(tracker, [id], 60_000)
}

/** Submits a new envelope, or joins the wait for it. */
const submit = async (tracker: Tracker, innerHash: string, { isNew = true, waitMs = 60_000 } = {}) =>
  await tracker.submit(await find(innerHash), { innerHash, isNew, waitMs })

/** Holds the calls of a method until the test lets go; then they get this answer, or the ledger's. */
function hold(ledger: ReturnType<typeof openLedger>, held: string, answer?: Fault) {
  const asked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  ledger.fault = async (method) => {
    if (method !== held) return undefined
    asked.resolve()
    await goOn.promise
    return answer
  }
  return { asked: asked.promise, letGo: goOn.resolve }
}

/** A transaction that the ledger has applied, under both of its hashes. */
function apply(
  { found }: ReturnType<typeof openLedger>,
  { innerHash, outerHash, applied }: Awaited<ReturnType<typeof record>>,
): void {
  for (const hash of [innerHash, outerHash]) found.set(hash, applied('success', APPLIED, 64_321n))
}

const envelopeOf = async (innerHash: string): Promise<RecordedTransfer['envelopes'][number]> => {
  const [envelope] = (await find(innerHash)).envelopes
  if (!envelope) throw new Error('no envelope')
  return envelope
}

const sends = () => proxy.calls.get('sendTransaction') ?? 0

test.each([
  ['from every node', 0],
  ['after two responses from a lagging node', 2],
])('books an applied rival together with the failed fee bump beside it, %s', async (_, lagging) => {
  const first = await record(90_560)
  const rival = await record(90_562)
  const ledger = openLedger(APPLIED)
  apply(ledger, rival)
  const failed = first.applied('bad-seq', APPLIED - 1, 1_111n)
  let stale = lagging
  ledger.fault = (method, { hash }) => {
    if (method !== 'getTransaction' || (hash !== first.innerHash && hash !== first.outerHash)) return undefined
    stale -= 1
    const behind = { ...ledger.range(), latestLedger: APPLIED - 2, latestLedgerCloseTime: NOW + APPLIED - 2 }
    return { answer: stale >= 0 ? { ...behind, status: 'NOT_FOUND' } : { ...ledger.range(), ...failed } }
  }
  const { transfer } = await find(rival.innerHash)
  expect(await waitFor(open(), transfer, 60_000)).toMatchObject({ kind: 'settled' })
  const feeCharged = 64_321n + 1_111n
  expect((await find(first.innerHash)).transfer).toMatchObject({
    status: 'succeeded',
    applied: rival.innerHash,
    feeCharged,
  })
  expect(await db.query.quotas.findMany()).toMatchObject([
    { held: 0n, used: feeCharged, count: 1 },
    { held: 0n, used: feeCharged, count: 1 },
  ])
  expect(await findDiscrepancies(db)).toEqual([])
})

test.each([
  ['after the account has used the number', 0, true],
  ['after every max time', 10_000, false],
])('does not decide when an applied rival is recorded during the lookup, %s', async (_, late, isUsed) => {
  const first = await record(90_560)
  const ledger = openLedger(APPLIED + late)
  if (isUsed) ledger.sequence = first.sequence
  const asked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  let hasReadAccount = !isUsed
  ledger.fault = async (method, { hash }) => {
    if (method === 'getLedgerEntries') hasReadAccount = true
    if (method !== 'getTransaction' || !hasReadAccount || ledger.found.has(String(hash))) return undefined
    const answer = { ...ledger.range(), status: 'NOT_FOUND' }
    asked.resolve()
    await goOn.promise
    return { answer }
  }
  const waiting = waitFor(open(), (await find(first.innerHash)).transfer, 60_000)
  await asked.promise
  const rival = await record(90_562)
  apply(ledger, rival)
  goOn.resolve()
  expect(await waiting).toMatchObject({ kind: 'settled', transfer: { status: 'succeeded', applied: rival.innerHash } })
  expect(await findDiscrepancies(db)).toEqual([])
})

test('clears the looked-up ledger when an envelope joins, and a lookup that began before does not set it', async () => {
  const first = await record(90_560)
  const before = await find(first.innerHash)
  expect(before.transfer.lookedUpLedger).toBe(RECORDED)
  await noteLookedUp(db, [before], RECORDED + 1)
  expect((await find(first.innerHash)).transfer.lookedUpLedger).toBe(RECORDED + 1)
  await record(90_562)
  expect((await find(first.innerHash)).transfer.lookedUpLedger).toBeNull()
  await noteLookedUp(db, [before], RECORDED + 2)
  expect((await find(first.innerHash)).transfer.lookedUpLedger).toBeNull()
})

test('expires a transfer that was not looked up until its time was over with the transaction that has used its number', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger(1_000)
  ledger.sequence = SEQUENCE
  const { transfer } = await find(innerHash)
  expect(await waitFor(open(), transfer, 60_000)).toMatchObject({
    kind: 'settled',
    transfer: { status: 'expired', resultCode: 'txBadSeq' },
  })
})

test('tells a caller that the row of its transfer is gone, as after a restore of the database', async () => {
  const { innerHash } = await record(90_560)
  openLedger()
  const { transfer } = await find(innerHash)
  const tracker = open()
  const waiting = waitFor(tracker, transfer, 60_000)
  await db.delete(envelopes)
  await db.delete(transfers)
  expect(await waiting).toEqual({ kind: 'gone' })
  expect(tracker.tracked.size).toBe(0)
})

test('submits a new envelope once, and again only after another ledger has closed without it', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  const tracker = open()
  void submit(tracker, innerHash)
  // Lookups may finish before the first submission has begun.
  await expect.poll(async () => (await envelopeOf(innerHash)).sentLedger).toBe(RECORDED)
  await lookUpAgain(tracker, innerHash)
  expect(sends()).toBe(1)
  ledger.latest += 1
  await lookUpAgain(tracker, innerHash)
  expect(sends()).toBe(2)
  await tracker.stop()
  expect((await find(innerHash)).envelopes).toMatchObject([{ sentLedger: ledger.latest, resultCode: null }])
})

test('does not submit again once the account has used the number, while its lookups reach nodes that lag', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  const tracker = open()
  void submit(tracker, innerHash)
  await expect.poll(sends).toBe(1)
  ledger.latest = RECORDED + 3
  ledger.sequence = SEQUENCE
  const lagging = { ...ledger.range(), latestLedger: RECORDED + 2, latestLedgerCloseTime: NOW + RECORDED + 2 }
  ledger.fault = (method) => (method === 'getTransaction' ? { answer: { ...lagging, status: 'NOT_FOUND' } } : undefined)
  await lookUpAgain(tracker, innerHash)
  expect([sends(), (await find(innerHash)).transfer.status]).toEqual([1, 'open'])
  ledger.fault = () => undefined
  await expect.poll(async () => [sends(), (await find(innerHash)).transfer.status]).toEqual([1, 'expired'])
})

test('does not submit again because of a ledger that had closed before the submission', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  ledger.sent = {
    ...sendAnswer('PENDING'),
    latestLedger: RECORDED + 1,
    latestLedgerCloseTime: String(NOW + RECORDED + 1),
  }
  const tracker = open()
  void submit(tracker, innerHash)
  await expect.poll(async () => (await envelopeOf(innerHash)).sentLedger).toBe(RECORDED + 1)
  ledger.latest = RECORDED + 1
  await lookUpAgain(tracker, innerHash)
  expect(sends()).toBe(1)
  ledger.latest = RECORDED + 2
  await lookUpAgain(tracker, innerHash)
  expect(sends()).toBe(2)
})

test('ignores a ledger far above the known ones in the response to a submission', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  ledger.sent = { ...sendAnswer('PENDING'), latestLedger: RECORDED + 1_000 }
  const tracker = open()
  void submit(tracker, innerHash)
  await expect.poll(async () => (await envelopeOf(innerHash)).sentLedger).toBe(RECORDED)
  ledger.latest = RECORDED + 1
  await expect.poll(sends).toBe(2)
})

test.each(['sentLedger', 'lookedUpLedger', 'refusedLedger'] as const)(
  'ignores a %s above the latest known ledger, so that nothing waits for a reset network',
  async (hint) => {
    const { innerHash } = await record(90_560)
    const ledger = openLedger(50)
    await db.execute(sql`UPDATE envelopes SET sent_ledger = ${hint === 'sentLedger' ? 900 : 40}, result_code = 'txBadSeq',
      refused_ledger = ${hint === 'refusedLedger' ? 900 : 40}, first_sent_at = now(), last_sent_at = now()`)
    await db.execute(sql`UPDATE transfers SET looked_up_ledger = ${hint === 'lookedUpLedger' ? 900 : 40}`)
    ledger.sent = sendAnswer('ERROR', bareResult('txBadSeq'))
    const { id } = (await find(innerHash)).transfer
    const tracker = open()
    await lookUp(tracker, [id], 60_000)
    await expect.poll(async () => (await find(innerHash)).transfer.lookedUpLedger).toBe(50)
    await expect
      .poll(async () => (await find(innerHash)).envelopes[0])
      .toMatchObject({ sentLedger: 50, refusedLedger: hint === 'refusedLedger' ? 50 : 40 })
  },
)

test('keeps two processes from submitting the same envelope in one ledger', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  const trackers = [open(), open(), open()]
  const recorded = await find(innerHash)
  for (const tracker of trackers) void tracker.submit(recorded, { innerHash, isNew: true, waitMs: 60_000 })
  const lookUpAll = () => Promise.all(trackers.map((tracker) => lookUp(tracker, [recorded.transfer.id], 60_000)))
  await lookUpAll()
  expect(sends()).toBe(1)
  for (ledger.latest = 101; ledger.latest < 104; ledger.latest += 1) {
    await lookUpAll()
    await lookUpAll()
    expect(sends()).toBe(ledger.latest - 99)
  }
})

test('wakes the requests of a process whose transfer another process settles', async () => {
  const sent = await record(90_560)
  const ledger = openLedger()
  const recorded = await find(sent.innerHash)
  const waiting = waitFor(open(), recorded.transfer, 60_000)
  const blind: Network = { ...network, call: () => Promise.reject(new Error('no RPC')) }
  const other = waitFor(open({ network: blind }), recorded.transfer, 60_000)
  ledger.latest = APPLIED
  apply(ledger, sent)
  for (const ending of [waiting, other]) expect(await ending).toMatchObject({ transfer: { status: 'succeeded' } })
})

test('does not take a refusal of replaced signatures for one of the new signatures', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  const stored = await envelopeOf(innerHash)
  const sending = hold(ledger, 'sendTransaction', { answer: sendAnswer('ERROR', bareResult('txBadAuth')) })
  const tracker = open()
  void submit(tracker, innerHash)
  await sending.asked
  await tracker.stop()
  await renewEnvelope(db, stored, { outerHash: 'ab'.repeat(32), signed: 'AAAA' })
  expect((await find(innerHash)).transfer.lookedUpLedger).toBeNull()
  sending.letGo()
  // The response to the first submission is handled by the time that the second one was refused.
  await lookUpAgain(open(), innerHash, 1)
  await expect
    .poll(async () => (await find(innerHash)).envelopes)
    .toMatchObject([{ outerHash: 'ab'.repeat(32), resultCode: 'txBadAuth' }])
  expect(sends()).toBe(2)
})

/** The envelope as another process has left it. */
const leave = (innerHash: string, columns: Partial<Envelope>) =>
  db.update(envelopes).set(columns).where(eq(envelopes.innerHash, innerHash))

test('does not tell a request with new signatures of the refusal of those that they replaced', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger(110)
  ledger.sequence = SEQUENCE - 2n
  await leave(innerHash, { resultCode: 'txBadAuth', sentLedger: 105, refusedLedger: 100 })
  const stored = await envelopeOf(innerHash)
  const reading = hold(ledger, 'getLedgerEntries')
  const tracker = open()
  const first = submit(tracker, innerHash, { isNew: false })
  // The round has read the rows.
  await reading.asked
  await renewEnvelope(db, stored, { outerHash: 'ab'.repeat(32), signed: 'AAAA' })
  const renewed = submit(tracker, innerHash, { isNew: false, waitMs: 500 })
  reading.letGo()
  expect(await first).toEqual({ kind: 'refused', resultCode: 'txBadAuth' })
  expect(await renewed).toEqual({ kind: 'open' })
})

test('does not overwrite a newer submission with the slow response to an older one', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  const sending = hold(ledger, 'sendTransaction')
  const tracker = open()
  void submit(tracker, innerHash)
  await sending.asked
  const newer = { sentLedger: RECORDED + 1, resultCode: 'txBadAuth', refusedLedger: RECORDED + 1 }
  await leave(innerHash, newer)
  sending.letGo()
  // The next round looks the transfer up only once the response is handled.
  await expect.poll(async () => (await find(innerHash)).transfer.lookedUpLedger).toBe(RECORDED)
  await lookUpAgain(tracker, innerHash, 1)
  expect((await find(innerHash)).envelopes).toMatchObject([newer])
})

test('leaves an envelope to the process that has submitted it in a later ledger', async () => {
  const { innerHash } = await record(90_560)
  openLedger()
  await leave(innerHash, { sentLedger: RECORDED + 1, firstSentAt: now, lastSentAt: now })
  const tracker = open()
  await lookUpAgain(tracker, innerHash, 2)
  expect(sends()).toBe(0)
  expect((await find(innerHash)).envelopes).toMatchObject([{ sentLedger: RECORDED + 1 }])
})

/** The network, but every submission waits until the test lets go. */
function withoutAnswers(): { network: Network; sent: () => number; letGo: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  onTestFinished(() => resolve())
  let sent = 0
  const call: Network['call'] = async (method, ...rest) => {
    if (method === 'sendTransaction') {
      sent += 1
      await promise
    }
    return await network.call(method, ...rest)
  }
  return { network: { ...network, call }, sent: () => sent, letGo: resolve }
}

test('looks a transfer up while its first submission is not answered', async () => {
  const sent = await record(90_560)
  const ledger = openLedger()
  const unanswered = withoutAnswers()
  const outcome = submit(open({ network: unanswered.network }), sent.innerHash)
  await expect.poll(unanswered.sent).toBe(1)
  ledger.latest = APPLIED
  apply(ledger, sent)
  expect(await outcome).toMatchObject({ kind: 'settled', transfer: { status: 'succeeded' } })
  unanswered.letGo()
})

test('an unanswered submission of one transfer delays no other', async () => {
  const { innerHash, outerHash } = await record(90_560)
  const { transfer: other } = await recordNamed(db, transferNamed('other'), limits, PLENTY)
  const ledger = openLedger(RECORDED + 1)
  let isOver = false
  ledger.fault = (method, { hash }) => {
    const isOther = method === 'getTransaction' && hash !== innerHash && hash !== outerHash
    return isOther && isOver ? { answer: over } : undefined
  }
  const unanswered = withoutAnswers()
  const tracker = open({ network: unanswered.network })
  void waitFor(tracker, (await find(innerHash)).transfer, 20_000)
  await expect.poll(unanswered.sent).toBe(1)
  isOver = true
  expect(await waitFor(tracker, other, 20_000)).toMatchObject({ kind: 'settled' })
  expect((await find(innerHash)).transfer.status).toBe('open')
  unanswered.letGo()
})

test('looks up and submits less often what stays open for many ledgers', async () => {
  const { innerHash } = await record(90_560)
  const ledger = openLedger()
  const tracker = open()
  void submit(tracker, innerHash)
  await expect.poll(sends).toBe(1)
  const { id } = (await find(innerHash)).transfer
  for (let closed = 0; closed < 14; closed += 1) {
    ledger.latest += 1
    const lookups = proxy.calls.get('getTransaction') ?? 0
    // Each round looks up at least one hash, which shows the ledger.
    await expect.poll(() => proxy.calls.get('getTransaction') ?? 0).toBeGreaterThan(lookups)
    await lookUp(tracker, [id], 20_000)
  }
  expect(sends()).toBeLessThan(10)
  expect(tracker.view.latestLedger()).toBe(RECORDED + 14)
})

test.each([
  ['pending', {}],
  ['refused', { resultCode: 'txInsufficientBalance', refusedLedger: RECORDED }],
])('tells a repeated request that its envelope is refused, while a %s rival is resubmitted', async (_, outcome) => {
  const [refused, rival] = [await record(90_560), await record(90_562)]
  openLedger(RECORDED + 2)
  const columns = { resultCode: 'txInsufficientBalance', refusedLedger: RECORDED, sentLedger: RECORDED }
  await leave(refused.innerHash, { ...columns, firstSentAt: now, lastSentAt: now })
  await leave(rival.innerHash, { ...outcome, sentLedger: RECORDED, firstSentAt: now, lastSentAt: now })
  const { innerHash } = refused
  const told = await submit(open(), innerHash, { isNew: false })
  expect(told).toEqual({ kind: 'refused', resultCode: 'txInsufficientBalance' })
})

/** Open transfers, each of a different account. */
async function recordMany(count: number): Promise<Transfer[]> {
  const recorded: Transfer[] = []
  for (let index = 0; index < count; index += 1) {
    recorded.push((await recordNamed(db, transferNamed(String(index)), limits, PLENTY)).transfer)
  }
  return recorded
}

const statusOf = async (index: number) =>
  (await findTransferOfHash(db, transferNamed(String(index)).innerHash))?.transfer.status

/** The last ledger has closed long after every maxTime. */
const over = {
  latestLedger: 1_000,
  latestLedgerCloseTime: 9_000_000_000,
  oldestLedger: 1,
  status: 'NOT_FOUND',
  entries: [],
}

/** The hashes that are looked up from now on. No ledger includes them, and none expires. */
function noteLookUps(): Set<string> {
  const lookedUp = new Set<string>()
  proxy.rule(({ method, params }) => {
    if (method !== 'getTransaction') return { status: 500 }
    lookedUp.add(String(params.hash))
    return { answer: { ...over, latestLedgerCloseTime: 1 } }
  })
  return lookedUp
}

test('settles other transfers while one cannot be written', async () => {
  proxy.rule(() => ({ answer: over }))
  const [first, ...others] = await recordMany(5)
  await db.execute(
    sql.raw(`CREATE FUNCTION refuse_settlement() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.id = '${first?.id}' AND NEW.status <> 'open' THEN RAISE EXCEPTION 'cannot be written'; END IF; RETURN NEW; END $$`),
  )
  await db.execute(
    sql`CREATE TRIGGER refuse_settlement BEFORE UPDATE ON ${transfers} FOR EACH ROW EXECUTE FUNCTION refuse_settlement()`,
  )
  onTestFinished(async () => void (await db.execute(sql`DROP FUNCTION refuse_settlement CASCADE`)))
  const tracker = open()
  if (first) void waitFor(tracker, first, 10)
  const ended = await Promise.all(others.map((transfer) => waitFor(tracker, transfer, 60_000)))
  await tracker.stop()
  for (const outcome of ended) expect(outcome?.kind).toBe('settled')
  expect(await statusOf(0)).toBe('open')
  expect(await findDiscrepancies(db)).toEqual([])
})

test('settles a transfer behind any number of others about which the RPC contradicts itself', async () => {
  const all = await recordMany(40)
  const contradicted = new Set(Array.from({ length: 39 }, (_, index) => transferNamed(String(index)).innerHash))
  proxy.rule(({ method, params }) => {
    if (method === 'getLedgerEntries') return { answer: over }
    if (method !== 'getTransaction') return { status: 500 }
    if (!contradicted.has(String(params.hash))) return { answer: over }
    const found = { status: 'SUCCESS', ledger: 999, createdAt: 8_000_000_000, envelopeXdr: 'AAAA', resultXdr: 'AAAA' }
    return { answer: { ...over, ...found } }
  })
  const tracker = open()
  for (const transfer of all.slice(0, 39)) void waitFor(tracker, transfer, 10)
  const [ended] = await Promise.all(all.slice(39).map((last) => waitFor(tracker, last, 60_000)))
  await tracker.stop()
  expect(ended?.kind).toBe('settled')
  expect(await statusOf(39)).toBe('expired')
  expect(await statusOf(0)).toBe('open')
})

test('looks up requested transfers before others that are due', async () => {
  const all = await recordMany(30)
  const [requested] = all.slice(-1)
  if (!requested) throw new Error('nothing was recorded')
  const lookedUp = noteLookUps()
  const tracker = open()
  for (const transfer of all.slice(0, -1)) void waitFor(tracker, transfer, 10)
  await lookUp(tracker, [requested.id], 60_000)
  expect(lookedUp).toContain(transferNamed('29').innerHash)
})

test('keeps the requests beyond one round for the next', async () => {
  const all = await recordMany(30)
  const lookedUp = noteLookUps()
  const ids = all.map(({ id }) => id)
  await lookUp(open(), ids, 60_000)
  for (let index = 0; index < 30; index += 1) expect(lookedUp).toContain(transferNamed(String(index)).innerHash)
})

test('ends a lookup without a response when its caller stops waiting', async () => {
  const [recorded] = await recordMany(1)
  const silent: Network = { ...network, call: () => new Promise(() => undefined) }
  const tracker = openTracker({ network: silent, database: async () => db, now: () => new Date() })
  if (recorded) await lookUp(tracker, [recorded.id], 10)
  expect(await statusOf(0)).toBe('open')
})

test('looks up an open transfer for an operator, after auditing the request', async () => {
  const sent = await record(90_560)
  const { innerHash } = sent
  const { id } = (await find(innerHash)).transfer
  const actor = { kind: 'operator', sub: 'Ada' } as const
  const context = { db, now, actor, tracker: open() }
  const ledger = openLedger(APPLIED)
  expect(await lookUpForOperator(context, id)).toBe(true)
  expect((await find(innerHash)).transfer.status).toBe('open')
  apply(ledger, sent)
  await expect
    .poll(async () => [await lookUpForOperator(context, id), (await find(innerHash)).transfer.status])
    .toEqual([false, 'succeeded'])
  for (const other of [crypto.randomUUID(), 'no id']) expect(await lookUpForOperator(context, other)).toBe(false)
  const entries = await db.select().from(auditLog).where(eq(auditLog.action, 'transfer.looked-up'))
  expect(entries.length).toBeGreaterThanOrEqual(2)
  const expected = { actorKind: 'operator', actorSub: 'Ada', subjectId: id }
  for (const entry of entries) expect(entry).toMatchObject(expected)
})

test('makes at most one lookup per interval for consecutive requests for one transfer', async () => {
  const young = { ...over, latestLedgerCloseTime: 1 }
  proxy.rule(({ method }) => (method === 'getTransaction' ? { answer: young } : { status: 500 }))
  proxy.calls.clear()
  const [recorded] = await recordMany(1)
  if (!recorded) throw new Error('nothing was recorded')
  const slow: Network = { ...network, pollMs: 2_000 }
  const tracker = open({ network: slow })
  const began = performance.now()
  for (let asked = 0; asked < 100; asked += 1) await lookUp(tracker, [recorded.id], 10)
  const intervals = Math.ceil((performance.now() - began) / slow.pollMs)
  // A round looks up one hash to learn the latest ledger, and both hashes of the transfer.
  expect(proxy.calls.get('getTransaction')).toBeLessThanOrEqual((intervals + 1) * 3)
})
