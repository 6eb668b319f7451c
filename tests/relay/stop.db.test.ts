import { randomUUID } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { batches, contractors, identities, payouts } from '#drizzle/schema/directory.ts'
import { paymentStops, relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { quotas, transfers } from '#drizzle/schema/transfers.ts'
import {
  batchRow,
  contractorRow,
  envelopeRow,
  identityRow,
  insertRows,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { listChannels } from '#lib/dashboard/channels.ts'
import { readAttention } from '#lib/dashboard/overview.ts'
import { unreachable } from '#lib/db/errors.ts'
import type { EmployerContext } from '#lib/directory/context.ts'
import { cancelPayout } from '#lib/directory/payouts/cancellation.ts'
import { admitUser } from '#lib/directory/users.ts'
import { readTokenEvents, type TokenEvent } from '#lib/relay/channel-events.ts'
import { changeChannel } from '#lib/relay/channel-state.ts'
import { claimLine, type LeasedLine } from '#lib/relay/lease.ts'
import { recordPayment, requireUnpaidOnLedger } from '#lib/relay/past-payments.ts'
import { readMarkKeys, storeMarkKeys } from '#lib/relay/payment-mark.ts'
import { reconcile } from '#lib/relay/reconcile.ts'
import { RELAY_TIMES } from '#lib/relay/relay.ts'
import { RECONCILE_PATIENCE_MS, resumePayments } from '#lib/relay/resume.ts'
import { startRun } from '#lib/relay/run.ts'
import { compareSequences, noteMove } from '#lib/relay/sequence.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Line, LineId } from '#lib/transfers/line.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { findTransfer, findTransferOfHash, setOf } from '#lib/transfers/rows.ts'
import { settle } from '#lib/transfers/settle.ts'
import { lockPayments } from '#lib/transfers/stop.ts'
import { sponsorTransfer } from '#lib/transfers/submit.ts'
import type { EventArchive } from '#lib/wallet/archive.ts'
import { keyIdOf, sealPayout } from '#lib/wallet/seal.ts'
import { archiveOf, type CountingLedger, payment, relayOn } from './counting-ledger.ts'
import { LATER, NO_LIMITS, NOW, openLineFixture, RECIPIENT, TOKEN } from './line-fixture.ts'

const [ONE, TWO] = [Keypair.random(), Keypair.random()].toSorted((one, two) =>
  one.publicKey() < two.publicKey() ? -1 : 1,
) as [Keypair, Keypair]
const A = ONE.publicKey()
const B = TWO.publicKey()
const OPERATOR = { kind: 'operator' as const, sub: 'Ada' }
const NOTE = 'the payees were asked'

const fixture = await openLineFixture()
const { db, setChannel } = fixture
afterAll(fixture.close)
beforeEach(async () => {
  await fixture.makeChannels(A)
  for (const table of [relayJobs, payouts, batches, contractors, quotas]) await db.delete(table)
})

/** Why a channel keeps payments stopped; null if it does not, or only waits. */
async function problemOf(address = A) {
  const channels = await listChannels(db, TOKEN, NOW)
  return channels.find((channel) => channel.address === address)?.reconcileProblem
}
const isStopped = async () => (await fixture.stopOf()) !== undefined
const payoutOf = async (id: string | null) => await db.query.payouts.findFirst({ where: eq(payouts.id, id ?? '') })
const setPayout = (id: string | null, columns: Partial<typeof payouts.$inferInsert>) =>
  db
    .update(payouts)
    .set(columns)
    .where(eq(payouts.id, id ?? ''))
const batchOf = async (id: string) => await db.query.batches.findFirst({ where: eq(batches.id, id) })
const newWallet = () => Keypair.random().publicKey()

/** Makes a run of one line, which channel A is to pay. */
async function makeRun(owner: string) {
  const [line] = await fixture.makeRun(owner, [A])
  if (!line) throw new Error('the run has no line')
  return { line, payout: (await fixture.lineOf(line)).payout }
}

/** The rows of an organisation, each payout with a contractor of its own, which `insert` writes together. */
function employerRows(wallet?: string) {
  const row = organisationRow()
  const organisation = row.id
  const identities = wallet === undefined ? [] : [identityRow({ sub: wallet, organisation })]
  const rows = { organisations: [row], identities, contractors: [], batches: [], payouts: [] } as Required<
    Pick<Parameters<typeof insertRows>[1], 'organisations' | 'identities' | 'contractors' | 'batches' | 'payouts'>
  >
  return {
    organisation,
    batches: (fields: Partial<Parameters<typeof batchRow>[0]>) => {
      const batch = batchRow({ organisation, ...fields })
      rows.batches = [...rows.batches, batch]
      return batch
    },
    payout: (batch: string, { address = RECIPIENT, ...fields }: Partial<Parameters<typeof payoutRow>[0]>) => {
      const contractor = contractorRow({ organisation })
      rows.contractors = [...rows.contractors, contractor]
      const payout = payoutRow({ organisation, contractor: contractor.id, batch, address, ...fields })
      rows.payouts = [...rows.payouts, payout]
      return payout
    },
    insert: () => insertRows(db, rows),
  }
}

/** The audit log's entries about payments and channels since the test began. */
async function audited(): Promise<() => Promise<unknown[]>> {
  const read = async () =>
    (await db.query.auditLog.findMany({ orderBy: (entry) => entry.sequence }))
      .filter(({ action }) => action.startsWith('payments.') || action.startsWith('channel.'))
      .map(({ actorKind, actorSub, action, detail }) => ({ actorKind, actorSub, action, detail }))
  const { length } = await read()
  return async () => (await read()).slice(length)
}

/** Reconciles as a host with the seeds of `channels`, once everything that was signed before the stop was applied or has expired. */
async function reconcileOn(ledger: CountingLedger = {}, channels: readonly Keypair[] = [ONE, TWO]) {
  const relay = relayOn(fixture, { closedAt: Date.now() + (RELAY_TIMES.drain + 5) * 1000, ...ledger }, channels)
  await relay.ledger.check()
  await reconcile(relay)
  return relay
}

/** A transfer of channel A that the sponsor has paid, and that was applied in this ledger. */
async function recordSponsored(ledger: number): Promise<void> {
  const applied = { status: 'succeeded', sequenceNumber: BigInt(ledger), ledger, bid: 1n } as const
  const row = transferRow({ account: A, hash: `hash ${ledger}`, ...applied })
  await insertRows(db, { transfers: [row], envelopes: [envelopeRow({ innerHash: randomUUID(), transfer: row.id })] })
}

const resume = (afterMs = 0) =>
  resumePayments({ db, now: new Date(Date.now() + afterMs), actor: OPERATOR, token: TOKEN }, { note: NOTE })

describe('a stop', () => {
  test('keeps a payment from being recorded that was proved before it', async () => {
    await fixture.makeLine()
    const line = await fixture.take(A)
    await fixture.stop(A)
    await expect(fixture.record(line)).rejects.toMatchObject({ code: 'payments-stopped' })
    expect(await db.$count(transfers)).toBe(0)
    expect(await fixture.lineOf(line)).toMatchObject({ state: 'preparing', sentAt: null, outcome: null })
    await db.delete(paymentStops)
    await fixture.record(line)
    expect(await fixture.lineOf(line)).toMatchObject({ state: 'sent' })
  })

  test('sees every payment that is ever recorded before it ends, if both begin at the same time', async () => {
    for (let round = 0; round < 20; round += 1) {
      await fixture.makeChannels(A)
      await fixture.makeLine()
      const line = await fixture.take(A)
      const record = () =>
        fixture.record(line).then(
          () => 'recorded',
          (error: { code: string }) => error.code,
        )
      const stop = async () => {
        await fixture.stop(A)
        return await db.$count(transfers)
      }
      const [recorded, visible] =
        round % 2 === 0 ? await Promise.all([record(), stop()]) : (await Promise.all([stop(), record()])).toReversed()
      expect([recorded, visible]).toEqual(visible === 1 ? ['recorded', 1] : ['payments-stopped', 0])
    }
  })

  test('begins once, however many channels move', async () => {
    await fixture.makeChannels(A, B)
    const entries = await audited()
    const relay = fixture.relayWith()
    await noteMove(relay, A)
    const first = await fixture.stopOf()
    await noteMove(relay, B)
    await noteMove(relay, A)
    expect(await fixture.stopOf()).toEqual(first)
    const actor = { actorKind: 'service', actorSub: 'relay' }
    expect(await entries()).toEqual([{ ...actor, action: 'payments.stopped', detail: { channel: A } }])
  })

  test('begins again when a channel moves that was reconciled for it', async () => {
    await fixture.makeChannels(A, B)
    const relay = fixture.relayWith()
    await noteMove(relay, A)
    const first = await fixture.stopOf()
    await setChannel(A, { reconciledStop: first?.since ?? null })
    await setChannel(B, { reconciledStop: new Date(0) })
    await noteMove(relay, B)
    expect(await fixture.stopOf()).toEqual(first)
    await new Promise((resolve) => setTimeout(resolve, 5))
    await noteMove(relay, A)
    const again = await fixture.stopOf()
    expect(again?.since.getTime()).toBeGreaterThan(first?.since.getTime() ?? 0)
    await noteMove(relay, A)
    expect(await fixture.stopOf()).toEqual(again)
  })

  test.each([
    ['begins when', 'a transaction that this database lacks', 4n, true],
    ['does not begin when', 'one that it has', 5n, false],
  ] as const)('%s a transfer of a channel has lost its number to %s', async (_, __, adoptedSequence, stops) => {
    await setChannel(A, { adoptedSequence: 4n })
    await fixture.makeLine()
    const line = await fixture.take(A)
    const { id } = await fixture.record(line, 'inner', 5n)
    await setChannel(A, { adoptedSequence })
    const lookedUp = setOf((await findTransfer(db, id))?.envelopes ?? [])
    await settle(db, id, { decision: { status: 'expired', resultCode: 'txBadSeq' }, lookedUp, now: LATER })
    expect(await isStopped()).toBe(stops)
    expect(await fixture.lineOf(line)).toMatchObject({ outcome: null, state: 'waiting' })
    expect(await fixture.lease(A)).toEqual(stops ? undefined : expect.objectContaining({ job: line.job }))
  })

  test('concerns one token', async () => {
    await fixture.stop()
    const isLocked = (token: string) => db.transaction((tx) => lockPayments(tx, token))
    expect([await isLocked(TOKEN), await isLocked('another token')]).toEqual([false, true])
  })
})

describe('a relay reconciles a channel', () => {
  test('whose move has paid nothing: payments go on by themselves, and runs with them', async () => {
    const [run] = await fixture.makeRun(newWallet(), [A])
    const relay = relayOn(fixture, {}, [ONE])
    await setChannel(A, { adoptedSequence: 5n, readAt: NOW })
    await compareSequences(relay)
    expect(await isStopped()).toBe(true)
    const entries = await audited()
    await reconcileOn()
    expect(await isStopped()).toBe(false)
    expect(await fixture.channelOf(A)).toMatchObject({ adoptedSequence: 8n, reconcileProblem: null, readAt: null })
    const actor = { actorKind: 'service', actorSub: 'relay' }
    expect(await entries()).toEqual([{ ...actor, action: 'payments.resumed', detail: { found: 0 } }])
    expect(await fixture.jobOf(run?.job ?? '')).toMatchObject({ status: 'running', code: null })
    expect(await fixture.take(A)).toMatchObject(run ?? {})
    await compareSequences(relay)
    expect(await isStopped()).toBe(false)
  })

  test('not before what was signed before the stop has been applied or has expired', async () => {
    await fixture.stop(A)
    const signed = payment({ channel: ONE, to: RECIPIENT, ledger: 80 })
    await reconcileOn({ closedAt: Date.now() })
    expect([await isStopped(), await problemOf()]).toEqual([true, null])
    // What was applied in the meantime is found.
    await reconcileOn({ payments: [signed] })
    expect(await isStopped()).toBe(false)
    expect((await findTransferOfHash(db, signed.hash))?.transfer).toMatchObject({ status: 'succeeded', account: A })
  })

  test('with the payments that the database lost: a line of a job, a payout of a run, and one of neither', async () => {
    const owner = newWallet()
    const [job] = await fixture.makeJob(2)
    const [run] = await fixture.makeRun(owner, [A])
    const payout = (await fixture.lineOf(run as LineId)).payout ?? ''
    await fixture.stop(A)
    const payments = [
      payment({ channel: ONE, to: RECIPIENT, purpose: `${job?.job}/0`, ledger: 80 }),
      payment({ channel: ONE, owner, to: RECIPIENT, purpose: payout, ledger: 81 }),
      payment({ channel: ONE, to: RECIPIENT, ledger: 82 }),
    ]
    const entries = await audited()
    await reconcileOn({ payments })
    const [ofJob, ofRun] = payments
    expect(await fixture.lineOf(job as LineId)).toMatchObject({ outcome: 'paid', hash: ofJob?.hash })
    expect(await fixture.jobOf(job?.job ?? '')).toMatchObject({ status: 'running' })
    expect(await fixture.lineOf(run as LineId)).toMatchObject({ outcome: 'paid', hash: ofRun?.hash })
    expect(await fixture.jobOf(run?.job ?? '')).toMatchObject({ status: 'completed' })
    expect(await payoutOf(payout)).toMatchObject({ status: 'paid', txHash: ofRun?.hash })
    expect(await db.$count(transfers)).toBe(3)
    expect(await entries()).toMatchObject([{ action: 'payments.resumed', detail: { found: 3 } }])
  })

  test('also through a host that has another channel’s seed, by the mark key that is sealed to their key', async () => {
    await fixture.makeChannels(A, B)
    const owner = newWallet()
    const { payout } = await makeRun(owner)
    const lost = payment({ channel: ONE, owner, to: RECIPIENT, purpose: payout ?? '', ledger: 80 })
    const key = generateRelayKey()
    const hostOf = (channels: Keypair[], by = key) => relayOn(fixture, {}, channels, by)
    await storeMarkKeys(hostOf([ONE]))
    await storeMarkKeys(hostOf([TWO], generateRelayKey()))
    const sealed = (await fixture.channelOf(A))?.sealedMarkKey
    await storeMarkKeys(hostOf([ONE]))
    expect((await fixture.channelOf(A))?.sealedMarkKey).toBe(sealed)
    const own = [...(await readMarkKeys(hostOf([ONE]))).entries()]
    expect([...(await readMarkKeys(hostOf([]))).entries()]).toEqual(own)
    expect([...(await readMarkKeys(hostOf([], generateRelayKey()))).keys()]).toEqual([])
    await fixture.stop(A)
    const relay = relayOn(fixture, { closedAt: Date.now() + (RELAY_TIMES.drain + 5) * 1000, payments: [lost] }, [], key)
    await relay.ledger.check()
    await reconcile(relay)
    expect(await payoutOf(payout)).toMatchObject({ status: 'paid', txHash: lost.hash })
    // The relays of the other key reconcile their own channel.
    expect((await fixture.channelOf(A))?.reconciledStop).toEqual((await fixture.stopOf())?.since)
    expect(await fixture.channelOf(B)).toMatchObject({ reconciledStop: null, reconcileProblem: null })
    await reconcileOn({}, [TWO])
    expect(await isStopped()).toBe(false)
  })

  test('from its last payment that was recorded before it was sent, in case an earlier one is still missing', async () => {
    await recordSponsored(60)
    await recordSponsored(50)
    const found = { account: A, sequenceNumber: 80n, ledger: 80, bid: 0n, status: 'succeeded' as const }
    await insertRows(db, { transfers: [transferRow({ account: 'G', ledger: 70 }), transferRow(found)] })
    await fixture.stop(A)
    const relay = await reconcileOn()
    expect(relay.starts).toEqual([60])
    expect(await isStopped()).toBe(false)
  })

  test('again if it moves once it is reconciled, while another channel is not', async () => {
    await fixture.makeChannels(A, B)
    await setChannel(A, { adoptedSequence: 7n })
    await insertRows(db, { transfers: [transferRow({ account: B })] })
    const at = (sequence: bigint) => ({
      readAccount: async (ledger: number, address: string) => ({ sequence: address === A ? sequence : 1n, ledger }),
    })
    await compareSequences(relayOn(fixture, at(8n)))
    await reconcileOn(at(8n))
    const first = await fixture.stopOf()
    expect((await fixture.channelOf(A))?.reconciledStop).toEqual(first?.since)
    expect(await problemOf(B)).toBe('transfer-open')
    const lost = payment({ channel: ONE, to: RECIPIENT, ledger: 80, number: 9n })
    await compareSequences(relayOn(fixture, at(9n)))
    const second = await fixture.stopOf()
    expect(second?.since.getTime()).toBeGreaterThan(first?.since.getTime() ?? 0)
    await db.update(transfers).set({ status: 'expired', settledAt: LATER }).where(eq(transfers.account, B))
    await reconcileOn({ ...at(9n), payments: [lost] })
    expect(await isStopped()).toBe(false)
    expect(await findTransferOfHash(db, lost.hash)).toBeDefined()
    expect(await fixture.channelOf(A)).toMatchObject({ adoptedSequence: 9n })
  })

  test.each([
    ['failed', () => new Error('an account that cannot be read')],
    ['rpc-behind', () => new LedgerError('unavailable', 'the RPC does not respond')],
  ] as const)('although another one cannot be read: %s', async (problem, error) => {
    await fixture.makeChannels(A, B)
    await fixture.stop(A)
    const readAccount = async (ledger: number, address: string) => {
      if (address === A) throw error()
      return { sequence: 8n, ledger }
    }
    await reconcileOn({ readAccount })
    expect(await problemOf(A)).toBe(problem)
    const stop = await fixture.stopOf()
    expect(await fixture.channelOf(B)).toMatchObject({ reconciledStop: stop?.since, reconcileProblem: null })
    await reconcileOn()
    expect([await isStopped(), await problemOf(A)]).toEqual([false, null])
  })

  test('only with its whole history: from the RPC, or from the first archive that has it', async () => {
    await recordSponsored(40)
    await fixture.stop(A)
    const lost = payment({ channel: ONE, to: RECIPIENT, ledger: 80 })
    const received = payment({ channel: TWO, to: A, ledger: 81 })
    const payments = [lost, received]
    const short = { oldestLedger: 70, payments }
    await reconcileOn(short)
    expect([await isStopped(), await problemOf()]).toEqual([true, 'history-gap'])
    expect(await findTransferOfHash(db, lost.hash)).toBeUndefined()
    const silent = {
      ...archiveOf(A, payments),
      readEvents: async () => {
        throw new Error('the archive does not respond')
      },
    }
    await reconcileOn({ ...short, archives: [silent, archiveOf(A, [], false)] })
    expect(await problemOf()).toBe('history-gap')
    await reconcileOn({ ...short, archives: [silent, archiveOf(A, [], false), archiveOf(A, payments)] })
    expect([await isStopped(), await problemOf()]).toEqual([false, null])
    expect(await findTransferOfHash(db, lost.hash)).toBeDefined()
    expect(await findTransferOfHash(db, received.hash)).toBeUndefined()
  })

  test('once an archive has caught up: until then there is no gap', async () => {
    await recordSponsored(40)
    await fixture.stop(A)
    const short = { oldestLedger: 70, payments: [payment({ channel: ONE, to: RECIPIENT, ledger: 75 })] }
    const late: EventArchive = {
      ...archiveOf(A, []),
      readEvents: async () => {
        throw new LedgerError('unavailable', 'the archive of the service is catching up')
      },
    }
    await reconcileOn({ ...short, archives: [archiveOf(A, [], false), late] })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'rpc-behind'])
    await reconcileOn({ ...short, archives: [archiveOf(A, short.payments)] })
    expect(await isStopped()).toBe(false)
  })

  test('only while the RPC still has the transactions of the payments that an archive shows', async () => {
    await recordSponsored(40)
    await fixture.stop(A)
    const payments = [payment({ channel: ONE, to: RECIPIENT, ledger: 60 })]
    await reconcileOn({ oldestLedger: 70, payments, archives: [archiveOf(A, payments)] })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'history-gap'])
    await reconcileOn({ oldestLedger: 30, payments })
    expect(await isStopped()).toBe(false)
  })

  test.each([
    [1, false, null],
    [2, true, 'rpc-behind'],
  ] as const)(
    'with events as recent as its account: %d ledgers behind the next one',
    async (eventsBehind, stopped, problem) => {
      await fixture.stop(A)
      await reconcileOn({ eventsBehind })
      expect([await isStopped(), await problemOf()]).toEqual([stopped, problem])
    },
  )

  test('not from the response of a node that lags behind the stop', async () => {
    await fixture.stop(A)
    await reconcileOn({ readAccount: async (ledger) => ({ sequence: 8n, ledger: ledger - 1 }) })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'rpc-behind'])
  })

  test('once its open transfer has ended', async () => {
    await fixture.makeLine()
    const line = await fixture.take(A)
    const transfer = await fixture.record(line)
    await fixture.stop(A)
    await reconcileOn()
    expect([await isStopped(), await problemOf()]).toEqual([true, 'transfer-open'])
    await fixture.settle(transfer, 'succeeded')
    expect((await fixture.lineOf(line)).outcome).toBe('paid')
    await reconcileOn()
    expect([await isStopped(), await problemOf()]).toEqual([false, null])
  })

  test('not while another transfer may have paid the same', async () => {
    await fixture.makeChannels(A, B)
    await fixture.makeLine()
    const line = await fixture.take(B)
    const transfer = await fixture.record(line)
    await fixture.stop(A)
    const payments = [payment({ channel: ONE, to: RECIPIENT, purpose: `${line.job}/${line.position}`, ledger: 80 })]
    await reconcileOn({ payments })
    expect([await problemOf(A), await problemOf(B)]).toEqual(['transfer-open', 'transfer-open'])
    await fixture.settle(transfer, 'expired')
    await reconcileOn({ payments })
    expect(await isStopped()).toBe(false)
    expect(await fixture.lineOf(line)).toMatchObject({ outcome: 'paid', hash: payments[0]?.hash })
  })

  test('whose last payment was applied in the fee bump of another account', async () => {
    const own = payment({ channel: ONE, to: RECIPIENT, ledger: 80, number: 8n })
    const innerHash = own.hash
    const row = transferRow({
      account: A,
      sequenceNumber: 8n,
      status: 'succeeded',
      ledger: 80,
      bid: 1n,
      hash: innerHash,
    })
    await insertRows(db, { transfers: [row], envelopes: [envelopeRow({ innerHash, transfer: row.id })] })
    await fixture.stop(A)
    await reconcileOn({ payments: [{ ...own, hash: 'f'.repeat(64) }] })
    expect([await isStopped(), await db.$count(transfers)]).toEqual([false, 1])
  })

  test('not while the database does not respond: that says nothing about the channel', async () => {
    await fixture.stop(A)
    await reconcileOn({ readAccount: () => Promise.reject(unreachable(new Error('a lock took too long'))) })
    expect([await isStopped(), await problemOf()]).toEqual([true, null])
    expect(await resume()).toEqual({ waitsFor: A })
  })

  test('once, for two hosts at the same time', async () => {
    await fixture.stop(A)
    const payments = [80, 81, 82].map((ledger) => payment({ channel: ONE, to: RECIPIENT, ledger }))
    const entries = await audited()
    await Promise.all([reconcileOn({ payments }), reconcileOn({ payments })])
    expect(await entries()).toMatchObject([{ action: 'payments.resumed', detail: { found: 3 } }])
    expect(await db.$count(transfers)).toBe(3)
  })
})

describe('a host that reconciles a channel more slowly than another one', () => {
  const behind = () => Promise.reject(new LedgerError('unavailable', 'no response'))
  const ofUnknownPurpose = payment({ channel: ONE, to: RECIPIENT, ledger: 80, owner: newWallet() })

  /** Stops payments, until the transfer of another channel ends. */
  async function keepStopped() {
    await fixture.makeChannels(A, B)
    const open = transferRow({ account: B })
    await insertRows(db, { transfers: [open] })
    await fixture.stop(A)
    return open
  }

  /** Begins to reconcile A, and waits at the reading of its account, which then resolves to what `end` resolves to. */
  async function reconcileSlowly(
    end: (latest: number) => Promise<{ sequence: bigint; ledger: number }>,
    ledger: CountingLedger = {},
  ) {
    const [entered, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const done = reconcileOn({
      ...ledger,
      readAccount: async (latest) => {
        entered.resolve()
        await left.promise
        return await end(latest)
      },
    })
    await entered.promise
    return async () => {
      left.resolve()
      await done
    }
  }

  test('does not replace its result: the purpose that an operator must know', async () => {
    await fixture.stop(A)
    const finish = await reconcileSlowly(behind)
    await reconcileOn({ payments: [ofUnknownPurpose] })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'purpose-unknown'])
    await finish()
    expect([await isStopped(), await problemOf()]).toEqual([true, 'purpose-unknown'])
  })

  test('does not replace the number of a later stop’s end', async () => {
    await fixture.stop(A)
    const finish = await reconcileSlowly(async (ledger) => ({ sequence: 6n, ledger }))
    await reconcileOn()
    expect([await isStopped(), (await fixture.channelOf(A))?.adoptedSequence]).toEqual([false, 8n])
    await finish()
    expect([await isStopped(), (await fixture.channelOf(A))?.adoptedSequence]).toEqual([false, 8n])
  })

  test('does not replace the higher number that the other one has read during the same stop', async () => {
    await keepStopped()
    const finish = await reconcileSlowly(async (ledger) => ({ sequence: 8n, ledger }))
    await reconcileOn({ readAccount: async (ledger) => ({ sequence: 9n, ledger }) })
    await finish()
    expect([await isStopped(), (await fixture.channelOf(A))?.adoptedSequence]).toEqual([true, 9n])
    expect((await fixture.channelOf(A))?.reconciledStop).toEqual((await fixture.stopOf())?.since)
  })

  test('reports nothing about a stop that has ended, or about the next one', async () => {
    await fixture.stop(A)
    const finish = await reconcileSlowly(behind)
    await db.delete(paymentStops)
    await finish()
    expect(await fixture.channelOf(A)).toMatchObject({ reconcileProblem: null })
    await fixture.stop(A)
    const finishAgain = await reconcileSlowly(behind)
    await db.delete(paymentStops)
    await fixture.stop(A)
    await reconcileOn({ payments: [ofUnknownPurpose] })
    await finishAgain()
    expect([await isStopped(), await problemOf()]).toEqual([true, 'purpose-unknown'])
  })

  test.each([
    ['for the purpose of one that it records after the channel was reconciled', 8n, 'purpose-unknown'],
    ['for nothing before a later one is read', 9n, null],
  ] as const)('asks an operator %s', async (_, number, problem) => {
    const open = await keepStopped()
    const unknown = payment({ channel: ONE, to: RECIPIENT, ledger: 80, owner: newWallet(), number })
    const later = payment({ channel: ONE, to: RECIPIENT, ledger: 90 })
    const payments = [unknown, later]
    const finish = await reconcileSlowly(async (ledger) => ({ sequence: 8n, ledger }), { payments, hides: later.hash })
    await reconcileOn()
    const first = await fixture.stopOf()
    await finish()
    expect([await problemOf(), await db.$count(transfers)]).toEqual([problem, 2])
    // Its row explains a number that no reading has compared.
    expect((await fixture.stopOf())?.since.getTime() === first?.since.getTime()).toBe(problem !== null)
    await db.update(transfers).set({ status: 'expired', settledAt: LATER }).where(eq(transfers.id, open.id))
    await reconcileOn({ payments })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'purpose-unknown'])
    expect(await resume()).toBe('resumed')
  })

  test('stops payments again if it finds one after they went on', async () => {
    await fixture.stop(A)
    const finish = await reconcileSlowly(async (ledger) => ({ sequence: 8n, ledger }), { payments: [ofUnknownPurpose] })
    await reconcileOn()
    expect(await isStopped()).toBe(false)
    await finish()
    expect(await fixture.stopOf()).toMatchObject({ found: 1 })
  })

  test('has not reconciled a channel of which the database has lost a payment again', async () => {
    await fixture.stop(A)
    const second = payment({ channel: ONE, to: RECIPIENT, ledger: 90 })
    const payments = [ofUnknownPurpose, second]
    // As if a replica took over that lacks the first row.
    const onLookUp = async (hash: string) => {
      if (hash === second.hash) await db.delete(transfers)
    }
    await reconcileOn({ payments, onLookUp })
    expect([await isStopped(), (await fixture.channelOf(A))?.reconciledStop]).toEqual([true, null])
    await reconcileOn({ payments })
    expect([await problemOf(), await db.$count(transfers)]).toEqual(['purpose-unknown', 2])
  })
})

describe('a payment that is marked for a payout', () => {
  const owner = newWallet()
  const payFor = (purpose: string | null, ledger: number) =>
    payment({ channel: ONE, owner, to: RECIPIENT, purpose: purpose ?? '', ledger })

  test('waits for the open transfer of a client that may pay the payout, although its line is open', async () => {
    const { line, payout } = await makeRun(owner)
    const open = transferRow({ account: owner, payout, recipient: RECIPIENT })
    await insertRows(db, { transfers: [open] })
    await setPayout(payout, { status: 'pending', transfer: open.id })
    await fixture.stop(A)
    const payments = [payFor(payout, 80)]
    await reconcileOn({ payments })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'transfer-open'])
    const expired = { status: 'expired', settledAt: LATER } as const
    await db.update(transfers).set(expired).where(eq(transfers.id, open.id))
    await setPayout(payout, { status: 'ready', transfer: null })
    await reconcileOn({ payments })
    expect(await isStopped()).toBe(false)
    expect(await payoutOf(payout)).toMatchObject({ status: 'paid', txHash: payments[0]?.hash })
    expect(await fixture.lineOf(line)).toMatchObject({ outcome: 'paid', hash: payments[0]?.hash })
  })

  test('pays it although the end of an earlier transfer of it is unknown', async () => {
    const { payout } = await makeRun(owner)
    const unknown = transferRow({ account: owner, payout, recipient: RECIPIENT, status: 'unknown', settledAt: NOW })
    await insertRows(db, { transfers: [unknown] })
    const pending = { status: 'pending', transfer: unknown.id, error: 'history-lost' } as const
    await setPayout(payout, pending)
    await fixture.stop(A)
    await reconcileOn({ payments: [payFor(payout, 80)] })
    expect(await isStopped()).toBe(false)
    expect(await payoutOf(payout)).toMatchObject({ status: 'paid', error: null })
    expect((await findTransfer(db, unknown.id))?.transfer).toMatchObject({ payout: null, foundFor: payout })
  })

  test('pays it although its wallet belongs to another organisation since, also with its line', async () => {
    const lines = await fixture.makeRun(owner, [A, A])
    const [withLine = '', without = ''] = await Promise.all(
      lines.map(async (line) => (await fixture.lineOf(line)).payout ?? ''),
    )
    const ended = { outcome: 'canceled', settledAt: NOW, sealedAmount: null } as const
    await db.update(relayLines).set(ended).where(eq(relayLines.payout, without))
    const before = await db.query.identities.findFirst({ where: eq(identities.sub, owner) })
    await db.update(identities).set({ organisation: randomUUID() }).where(eq(identities.sub, owner))
    await fixture.stop(A)
    const payments = [payFor(withLine, 80), payFor(without, 81)]
    await reconcileOn({ payments })
    expect(await isStopped()).toBe(false)
    expect(await payoutOf(withLine)).toMatchObject({ status: 'paid', txHash: payments[0]?.hash })
    expect(await payoutOf(without)).toMatchObject({ status: 'paid', txHash: payments[1]?.hash })
    await db
      .update(identities)
      .set({ organisation: before?.organisation ?? '' })
      .where(eq(identities.sub, owner))
  })

  test('is shown with it if another transfer has paid it, or it is canceled', async () => {
    const lines = await fixture.makeRun(owner, [A, A])
    const [paid, canceled] = await Promise.all(lines.map(async (line) => (await fixture.lineOf(line)).payout ?? ''))
    await db.update(relayLines).set({ outcome: 'canceled', settledAt: NOW, sealedAmount: null })
    const first = { status: 'paid', txHash: 'the first payment', paidAt: NOW } as const
    await setPayout(paid ?? '', first)
    await setPayout(canceled ?? '', { status: 'canceled' })
    await fixture.stop(A)
    const payments = [payFor(paid ?? '', 80), payFor(canceled ?? '', 81), payFor(canceled ?? '', 82)]
    await reconcileOn({ payments })
    expect(await isStopped()).toBe(false)
    const [again, late, second] = payments.map(({ hash }) => hash)
    expect(await payoutOf(paid ?? '')).toMatchObject({ ...first, error: `paid twice: the ledger also shows ${again}` })
    expect(await payoutOf(canceled ?? '')).toMatchObject({
      status: 'canceled',
      txHash: late,
      error: `paid twice: the ledger also shows ${second}`,
    })
    const { items } = await readAttention(db, LATER)
    expect(items.map(({ what }) => what.replace(/^.* was/, 'was')).toSorted()).toEqual([
      'was paid twice',
      'was paid, although the payout is canceled',
      'was paid, although the payout is canceled',
    ])
  })
})

describe('a payment whose mark names no payout of this database', () => {
  const owner = newWallet()
  const lost = payment({ channel: ONE, owner, to: RECIPIENT, ledger: 80 })

  test('needs an operator’s word, also once it has a row', async () => {
    await fixture.makeChannels(A, B)
    await fixture.stop(A)
    for (let round = 0; round < 3; round += 1) {
      await reconcileOn({ payments: [lost] })
      expect([await isStopped(), await problemOf(A)]).toEqual([true, 'purpose-unknown'])
      expect((await findTransferOfHash(db, lost.hash))?.transfer).toMatchObject({ payout: null, owner })
      expect((await fixture.stopOf())?.found).toBe(1)
    }
    expect((await fixture.channelOf(B))?.reconciledStop).toEqual((await fixture.stopOf())?.since)
    expect(await resume()).toBe('resumed')
    expect([await isStopped(), await problemOf(A)]).toEqual([false, null])
  })

  test('is not answered for what the channel has done since: payments stop again', async () => {
    await fixture.stop(A)
    await reconcileOn({ payments: [payment({ channel: ONE, owner, to: RECIPIENT, ledger: 80, number: 8n })] })
    expect(await problemOf()).toBe('purpose-unknown')
    // A host has seen the next number, and not stopped payments again yet.
    await setChannel(A, { ledgerSequence: 9n })
    expect(await resume()).toBe('resumed')
    await compareSequences(relayOn(fixture, { readAccount: async (ledger) => ({ sequence: 9n, ledger }) }))
    expect(await isStopped()).toBe(true)
  })

  test('asks for no word once the channel has moved again: that payment is read first', async () => {
    const next = payment({ channel: ONE, owner, to: RECIPIENT, ledger: 90, number: 9n })
    await fixture.stop(A)
    await reconcileOn({ payments: [payment({ channel: ONE, owner, to: RECIPIENT, ledger: 80, number: 8n })] })
    const moved = { readAccount: async (ledger: number) => ({ sequence: 9n, ledger }) }
    await compareSequences(relayOn(fixture, moved))
    expect([await problemOf(), await resume()]).toEqual([null, { waitsFor: A }])
    await reconcileOn({ ...moved, payments: [lost, next] })
    expect(await problemOf()).toBe('purpose-unknown')
    expect(await findTransferOfHash(db, next.hash)).toBeDefined()
    expect(await resume()).toBe('resumed')
  })

  test('does not hide that a later payment could not be read yet: a word is too early', async () => {
    const later = payment({ channel: ONE, owner, to: RECIPIENT, ledger: 90 })
    await fixture.stop(A)
    const hidden = { payments: [lost, later], hides: later.hash }
    await reconcileOn(hidden)
    expect([await isStopped(), await problemOf(), await db.$count(transfers)]).toEqual([true, 'rpc-behind', 1])
    expect(await resume(RECONCILE_PATIENCE_MS - 60_000)).toEqual({ waitsFor: A })
    await reconcileOn({ payments: [lost, later] })
    expect([await problemOf(), await db.$count(transfers)]).toEqual(['purpose-unknown', 2])
    expect(await resume()).toBe('resumed')
  })

  test('is asked about although its number was adopted at a word, by the host that finds it afterwards', async () => {
    await setChannel(A, { adoptedSequence: 8n })
    const relay = relayOn(
      fixture,
      { payments: [payment({ channel: ONE, owner, to: RECIPIENT, ledger: 80, number: 8n })] },
      [ONE],
    )
    await relay.ledger.check()
    const [found] = (await readTokenEvents(relay, A, undefined)).transfers
    expect(await recordPayment(relay, found as TokenEvent)).toMatchObject({ id: expect.any(String) })
    expect(await fixture.stopOf()).toMatchObject({ found: 1 })
    await reconcileOn({ payments: [] })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'purpose-unknown'])
  })

  test('stops payments although the database does not have its channel', async () => {
    const relay = relayOn(fixture, { payments: [lost] }, [ONE])
    await relay.ledger.check()
    const [found] = (await readTokenEvents(relay, A, undefined)).transfers
    await db.delete(relayChannels)
    await recordPayment(relay, found as TokenEvent)
    expect(await fixture.stopOf()).toMatchObject({ found: 1 })
    expect(await fixture.channelOf(A)).toMatchObject({
      adoptedSequence: null,
      reconciledStop: null,
      hasUnknownPurpose: true,
    })
  })

  test('needs no word before everything that was signed before the stop was applied or has expired', async () => {
    await fixture.stop(A)
    const relay = relayOn(fixture, { payments: [lost] }, [ONE])
    await relay.ledger.check()
    await reconcile(relay)
    expect([await problemOf(), await db.$count(transfers)]).toEqual([null, 1])
    expect(await resume()).toEqual({ waitsFor: A })
  })

  test('includes one that names a payout of another payee', async () => {
    const { line, payout } = await makeRun(owner)
    await fixture.stop(A)
    const elsewhere = payment({ channel: ONE, owner, to: newWallet(), purpose: payout ?? '', ledger: 80 })
    await reconcileOn({ payments: [elsewhere] })
    expect([await isStopped(), await problemOf()]).toEqual([true, 'purpose-unknown'])
    expect((await findTransferOfHash(db, elsewhere.hash))?.transfer).toMatchObject({ payout: null, owner })
    expect(await payoutOf(payout)).toMatchObject({ status: 'ready', txHash: null })
    expect((await fixture.lineOf(line)).outcome).toBeNull()
  })

  test('is not forgotten by a relay that dies between its row and the note', async () => {
    await fixture.stop(A)
    await db.execute(sql`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'killed'; END $$`)
    await db.execute(sql`CREATE TRIGGER die BEFORE UPDATE OF has_unknown_purpose ON relay_channels FOR EACH ROW
      WHEN (NEW.has_unknown_purpose) EXECUTE FUNCTION die()`)
    try {
      await reconcileOn({ payments: [lost] })
    } finally {
      await db.execute(sql`DROP TRIGGER die ON relay_channels`)
      await db.execute(sql`DROP FUNCTION die()`)
    }
    expect([await isStopped(), await problemOf(), await db.$count(transfers)]).toEqual([true, 'failed', 0])
    expect((await fixture.stopOf())?.found).toBe(0)
    await reconcileOn({ payments: [lost] })
    expect([await isStopped(), await problemOf(), await db.$count(transfers)]).toEqual([true, 'purpose-unknown', 1])
  })
})

describe('an operator retires a channel', () => {
  const retire = (address = A) =>
    changeChannel({ db, now: LATER, actor: OPERATOR }, { token: TOKEN, address, note: NOTE, change: 'retired' })

  test('which is not compared with the ledger from then on, and keeps no payments stopped', async () => {
    await fixture.makeChannels(A, B)
    await setChannel(A, { adoptedSequence: 7n, reconcileProblem: 'history-gap' })
    await fixture.stop(A)
    const entries = await audited()
    expect([await retire(), await retire(), await retire(newWallet())]).toEqual([true, false, false])
    const entry = { actorKind: 'operator', actorSub: 'Ada', action: 'channel.retired', detail: { note: NOTE } }
    expect(await entries()).toEqual([entry])
    expect(await fixture.channelOf(A)).toMatchObject({ retired: true, reconcileProblem: null })
    const read = new Set<string>()
    const readAccount = async (ledger: number, address: string) => {
      read.add(address)
      return { sequence: address === A ? 8n : 0n, ledger }
    }
    await reconcileOn({ readAccount })
    expect(await isStopped()).toBe(false)
    await compareSequences(relayOn(fixture, { readAccount }))
    expect(await isStopped()).toBe(false)
    expect([...read]).toEqual([B])
  })

  test('which pays nothing any more', async () => {
    await fixture.makeLine()
    const line = await fixture.take(A)
    await retire()
    await expect(fixture.record(line)).rejects.toMatchObject({ code: 'channel-paused' })
    expect(await fixture.lease(A)).toBeUndefined()
  })
})

describe('an operator lets payments go on', () => {
  test('once they are stopped', async () => {
    expect(await resume()).toBe('not-stopped')
  })

  test('not while relays may still reconcile every channel by themselves', async () => {
    await fixture.stop(A)
    const entries = await audited()
    expect(await resume(RECONCILE_PATIENCE_MS - 60_000)).toEqual({ waitsFor: A })
    for (const reconcileProblem of ['transfer-open', 'rpc-behind'] as const) {
      await setChannel(A, { reconcileProblem })
      expect(await resume(RECONCILE_PATIENCE_MS - 60_000)).toEqual({ waitsFor: A })
    }
    // The payout of a client's open transfer is not suspended, although A may have paid it.
    const { payout } = await makeRun(newWallet())
    const open = transferRow({ account: newWallet(), payout, createdAt: new Date(0) })
    await insertRows(db, { transfers: [open] })
    expect(await resume(RECONCILE_PATIENCE_MS + 60_000)).toEqual({ undecided: open.id })
    expect([await isStopped(), await entries()]).toEqual([true, []])
    // The relay that has reported the open transfer may be gone for good.
    await setChannel(A, { reconcileProblem: 'transfer-open' })
    await db.update(transfers).set({ status: 'expired', settledAt: LATER }).where(eq(transfers.id, open.id))
    expect(await resume(RECONCILE_PATIENCE_MS + 60_000)).toBe('resumed')
  })

  test.each(['history-gap', 'failed'] as const)(
    'at once if a channel has the problem %s, with the number that was compared last',
    async (reconcileProblem) => {
      await fixture.makeChannels(A, B)
      await setChannel(A, { adoptedSequence: 5n, ledgerSequence: 8n, reconcileProblem })
      await setChannel(B, { adoptedSequence: 5n, ledgerSequence: 4n, reconcileProblem })
      await fixture.stop(A)
      const entries = await audited()
      expect(await resume()).toBe('resumed')
      expect([await isStopped(), await problemOf()]).toEqual([false, null])
      expect(await fixture.channelOf(A)).toMatchObject({ adoptedSequence: 8n })
      expect(await fixture.channelOf(B)).toMatchObject({ adoptedSequence: 5n })
      const detail = { note: NOTE, found: 0, suspended: 0, unreconciled: 2 }
      const actor = { actorKind: 'operator', actorSub: 'Ada' }
      expect(await entries()).toEqual([{ ...actor, action: 'payments.resumed', detail }])
      await compareSequences(relayOn(fixture, { readAccount: async (ledger) => ({ sequence: 5n, ledger }) }))
      expect(await isStopped()).toBe(false)
    },
  )

  /** An organisation with two batches, of which one is a draft, and what cancels its payouts. */
  async function makeEmployer() {
    const { organisation, batches: own, payout, insert } = employerRows()
    const counts = { payoutCount: 4, settledCount: 1, failedCount: 1 }
    const started = own({ status: 'started', ...counts, startedAt: NOW })
    const draft = own({ payoutCount: 1 })
    const later = own({ status: 'ready', payoutCount: 1 })
    const rows = {
      paid: payout(started.id, { status: 'paid' }),
      ready: payout(started.id, { status: 'ready' }),
      failed: payout(started.id, { status: 'failed', error: 'would-fail' }),
      pending: payout(started.id, { status: 'pending' }),
      canceled: payout(started.id, { status: 'canceled' }),
      draft: payout(draft.id, { status: 'draft' }),
      later: payout(later.id, { status: 'ready', createdAt: new Date(Date.now() + 60_000) }),
    }
    await insert()
    const employer = { organisation, actor: { kind: 'ledger' as const, sub: 'employer' } }
    const cancel = ({ id }: { id: string }) => cancelPayout({ db, employer, now: LATER } as EmployerContext, id)
    return { rows, batches: { started, draft, later }, cancel }
  }

  test('without whole history: older payouts become pending, and their employer cancels them', async () => {
    const { rows, batches: own, cancel } = await makeEmployer()
    await fixture.stop(A)
    await setChannel(A, { reconcileProblem: 'history-gap' })
    const entries = await audited()
    expect(await resume()).toBe('resumed')
    expect(await entries()).toMatchObject([{ detail: { suspended: 3, unreconciled: 1 } }])
    const suspended = { status: 'pending', error: 'restored-without-history', transfer: null }
    for (const { id } of [rows.ready, rows.failed, rows.draft]) expect(await payoutOf(id)).toMatchObject(suspended)
    for (const { id, status } of [rows.paid, rows.canceled, rows.later])
      expect(await payoutOf(id)).toMatchObject({ status })
    expect(await payoutOf(rows.pending.id)).toMatchObject({ status: 'pending', error: null })
    const counts = { payoutCount: 4, settledCount: 1, failedCount: 0 }
    expect(await batchOf(own.started.id)).toMatchObject({ status: 'started', ...counts })
    expect(await batchOf(own.draft.id)).toMatchObject({ status: 'draft', payoutCount: 1 })
    expect(await batchOf(own.later.id)).toMatchObject({ status: 'ready', payoutCount: 1 })
    await cancel(rows.ready)
    await cancel(rows.failed)
    await cancel(rows.draft)
    await expect(cancel(rows.pending)).rejects.toMatchObject({ code: 'payout-sent' })
    expect(await batchOf(own.started.id)).toMatchObject({ status: 'started', ...counts, payoutCount: 2 })
    expect(await batchOf(own.draft.id)).toMatchObject({ status: 'draft', payoutCount: 0 })
  })

  test('without whole history: a payment that is found later pays its payout, or is noted on a canceled one', async () => {
    const owner = newWallet()
    const lines = await fixture.makeRun(owner, [A, A])
    const [pending = '', canceled = ''] = await Promise.all(
      lines.map(async (line) => (await fixture.lineOf(line)).payout ?? ''),
    )
    await fixture.stop(A)
    await setChannel(A, { reconcileProblem: 'history-gap' })
    expect(await resume()).toBe('resumed')
    const organisation = (await payoutOf(canceled))?.organisation ?? ''
    const employer = { organisation, actor: { kind: 'ledger' as const, sub: owner } }
    await cancelPayout({ db, employer, now: LATER } as EmployerContext, canceled)
    await fixture.stop(A)
    const payments = [pending, canceled].map((purpose, index) =>
      payment({ channel: ONE, owner, to: RECIPIENT, purpose, ledger: 80 + index }),
    )
    await reconcileOn({ payments })
    expect([await isStopped(), await problemOf()]).toEqual([false, null])
    expect(await payoutOf(pending)).toMatchObject({ status: 'paid', txHash: payments[0]?.hash, error: null })
    expect(await payoutOf(canceled)).toMatchObject({ status: 'canceled', txHash: payments[1]?.hash })
    const { batch = '' } = (await payoutOf(pending)) ?? {}
    expect(await batchOf(batch)).toMatchObject({ status: 'completed', payoutCount: 1, settledCount: 1, failedCount: 0 })
  })

  test('of which only the purpose is unknown: payouts stay as they are', async () => {
    const { rows, batches: own } = await makeEmployer()
    await fixture.stop(A)
    const reconciledStop = (await fixture.stopOf())?.since ?? null
    await setChannel(A, { reconciledStop, hasUnknownPurpose: true })
    expect(await resume()).toBe('resumed')
    expect(await payoutOf(rows.ready.id)).toMatchObject({ status: 'ready', error: null })
    expect(await batchOf(own.started.id)).toMatchObject({ failedCount: 1 })
  })
})

describe('a host that is about to pay a line and finds that it was paid', () => {
  /** Pays the line of a job with this number, and looks for the payment. */
  async function findPaid(number: bigint) {
    const [line] = await fixture.makeJob(1)
    const paid = payment({ channel: ONE, to: RECIPIENT, purpose: `${line?.job}/0`, ledger: 80, number })
    const relay = relayOn(fixture, { payments: [paid] }, [ONE])
    await relay.ledger.check()
    relay.memory.pastPayments = { payments: new Map(), through: 0, readAt: new Map(), reading: undefined }
    const lineRow = { ...(await fixture.lineOf(line as LineId)), ...line }
    await expect(requireUnpaidOnLedger({ ...relay, times: RELAY_TIMES }, lineRow as Line)).rejects.toMatchObject({
      code: 'line-gone',
    })
    expect(await fixture.lineOf(line as LineId)).toMatchObject({ outcome: 'paid', hash: paid.hash })
  }

  test('stops payments: an earlier payment may have no row either, and its row would hide that', async () => {
    await setChannel(A, { adoptedSequence: 7n })
    await findPaid(8n)
    expect(await fixture.stopOf()).toMatchObject({ found: 1 })
  })

  test.each([
    ['the number was adopted at an operator’s word', { adoptedSequence: 8n }],
    ['the channel is retired', { adoptedSequence: 7n, retired: true }],
  ])('stops nothing if %s', async (_, columns) => {
    await setChannel(A, columns)
    await findPaid(8n)
    expect(await isStopped()).toBe(false)
  })
})

describe('when payments go on after payments were found', () => {
  test('unfinished runs end, with their unused quota: the employer starts them again', async () => {
    const owner = newWallet()
    const lines = await fixture.makeRun(owner, [A, A, A])
    const leased: LeasedLine = await fixture.take(A)
    const [job] = await fixture.makeJob(1)
    await fixture.settle(await fixture.record(leased), 'succeeded')
    const [lost, open] = lines.filter(({ position }) => position !== leased.position) as [LineId, LineId]
    const { payout } = await fixture.lineOf(lost)
    await fixture.stop(A)
    await reconcileOn({
      payments: [payment({ channel: ONE, owner, to: RECIPIENT, purpose: payout ?? '', ledger: 80 })],
    })
    expect(await isStopped()).toBe(false)
    expect((await fixture.lineOf(leased)).outcome).toBe('paid')
    expect((await fixture.lineOf(lost)).outcome).toBe('paid')
    const canceled = { outcome: 'canceled', error: 'restored', sealedAmount: null, settledAt: LATER }
    expect(await fixture.lineOf(open)).toMatchObject(canceled)
    expect(await fixture.jobOf(open.job)).toMatchObject({ status: 'failed', code: 'restored', endedAt: LATER })
    expect((await db.select().from(quotas).where(eq(quotas.account, owner))).map(({ count }) => count)).toEqual([2])
    expect(await payoutOf((await fixture.lineOf(open)).payout)).toMatchObject({ status: 'ready', error: null })
    // A job pays from test funds, of which the ledger shows everything.
    expect(await fixture.jobOf(job?.job ?? '')).toMatchObject({ status: 'running', code: null })
    expect(await fixture.take(A)).toMatchObject({ job: job?.job })
  })

  test('a payment that was proved for an ended run is not recorded', async () => {
    const { line } = await makeRun(newWallet())
    const leased = await fixture.take(A)
    await fixture.stop(A)
    await reconcileOn({ payments: [payment({ channel: ONE, to: RECIPIENT, ledger: 80 })] })
    expect((await fixture.lineOf(line)).error).toBe('restored')
    const claim = db.transaction((tx) => claimLine(tx, fixture.relayWith(), leased, 9n))
    await expect(claim).rejects.toMatchObject({ code: 'line-gone' })
  })
})

describe('during a stop, a client’s transfer', () => {
  const ELSEWHERE = newWallet()
  let wallet: string
  let older: string
  let newer: string
  beforeEach(async () => {
    wallet = newWallet()
    const { batches: own, payout, insert } = employerRows(wallet)
    const { id } = own({ status: 'ready', payoutCount: 2 })
    const createdAt = new Date(Date.now() + 60_000)
    older = payout(id, { status: 'ready' }).id
    newer = payout(id, { status: 'ready', address: ELSEWHERE, createdAt }).id
    await insert()
  })

  /** Records a transfer. Resolves to the payout that it pays. */
  const pay = async (to: string, payoutId?: string, { from = wallet } = {}): Promise<string | null> =>
    (await fixture.recordOfClient({ from, to, payoutId })).payout

  const RECONCILING = { code: 'reconciling', retryAfter: 30 }

  test('is refused if it may pay a payout from before the stop, by its recipient or by its name', async () => {
    await fixture.stop(A)
    await expect(pay(RECIPIENT)).rejects.toMatchObject(RECONCILING)
    await expect(pay(RECIPIENT, older)).rejects.toMatchObject(RECONCILING)
    await expect(pay(RECIPIENT, newer)).rejects.toMatchObject(RECONCILING)
    await expect(pay(ELSEWHERE, older)).rejects.toMatchObject(RECONCILING)
    expect(await db.$count(transfers)).toBe(0)
    await setPayout(older, { status: 'failed' })
    await db.update(batches).set({ failedCount: 1, failedAt: NOW })
    await expect(pay(RECIPIENT)).rejects.toMatchObject(RECONCILING)
    await db.delete(paymentStops)
    expect(await pay(RECIPIENT)).toBe(older)
  })

  test('is recorded if it pays a newer payout, or none', async () => {
    await fixture.stop(A)
    expect(await pay(ELSEWHERE, newer)).toBe(newer)
    expect(await pay(newWallet(), undefined, { from: newWallet() })).toBeNull()
  })

  test('is recorded if every older payout to its recipient is paid or canceled', async () => {
    await fixture.stop(A)
    await setPayout(older, { status: 'canceled' })
    expect(await pay(RECIPIENT)).toBeNull()
  })

  test('is recorded if the older payout is another organisation’s', async () => {
    const stranger = newWallet()
    const organisation = organisationRow()
    const identities = [identityRow({ sub: stranger, organisation: organisation.id })]
    await insertRows(db, { organisations: [organisation], identities })
    await fixture.stop(A)
    expect(await pay(RECIPIENT, undefined, { from: stranger })).toBeNull()
    // A wallet without records has no payouts.
    expect(await pay(RECIPIENT, undefined, { from: newWallet() })).toBeNull()
  })

  test('competes for a transfer that was recorded before it', async () => {
    expect(await pay(RECIPIENT)).toBe(older)
    await fixture.stop(A)
    expect(await pay(RECIPIENT, older)).toBe(older)
    expect(await db.$count(transfers)).toBe(1)
  })

  test('is recorded if the ledger has applied it', async () => {
    const signer = Keypair.random()
    const organisation = (await payoutOf(older))?.organisation ?? ''
    await insertRows(db, { identities: [identityRow({ sub: signer.publicKey(), organisation })] })
    await fixture.stop(A)
    const own = payment({ channel: signer, to: RECIPIENT, ledger: 99 })
    const { sponsor, network } = relayOn(fixture, { closedAt: Date.now() + 60_000, payments: [own] })
    const context = { sponsor, tracker: sponsor.tracker, waitMs: 60_000 }
    const sponsored = await sponsorTransfer(context, decodeInner(own.signedXdr, network.passphrase), {
      payoutId: older,
    })
    expect(sponsored).toEqual({ hash: own.hash, status: 'SUCCESS' })
    expect(await payoutOf(older)).toMatchObject({ status: 'paid', txHash: own.hash })
    expect((await fixture.stopOf())?.found).toBe(0)
  })
})

test('no run starts during a stop: its channels are unavailable', async () => {
  const owner = newWallet()
  const relayKey = generateRelayKey()
  const kid = await keyIdOf(publicHalf(relayKey))
  const { organisation, batches: own, payout, insert } = employerRows()
  const batch = own({ status: 'ready', payoutCount: 1 })
  const { id, contractor } = payout(batch.id, { status: 'ready' })
  await insert()
  await insertRows(db, { identities: [identityRow({ sub: owner, organisation })] })
  const binding = { batch: batch.id, contractor, spender: A }
  await setPayout(id, { encryptedAmount: await sealPayout(publicHalf(relayKey), binding, 1n) })
  const { network } = relayOn(fixture, {})
  const start = async () =>
    await startRun(
      {
        db,
        user: await admitUser({ db, now: LATER }, { kind: 'ledger', sub: owner }),
        session: { kind: 'ledger', sub: owner } as Parameters<typeof startRun>[0]['session'],
        batch: { key: publicHalf(relayKey), relayKey: kid },
        network,
        token: TOKEN,
        limits: NO_LIMITS,
        now: LATER,
      },
      { id: batch.id, signature: '' },
    )
  const undelegated = { channel: A, reason: 'delegation-missing' }
  const refusal = (...errors: unknown[]) => ({ code: 'run-not-ready', details: { errors } })
  await fixture.stop(B)
  await expect(start()).rejects.toMatchObject(refusal({ channel: A, reason: 'channel-unavailable' }, undelegated))
  await db.delete(paymentStops)
  await expect(start()).rejects.toMatchObject(refusal(undelegated))
})
