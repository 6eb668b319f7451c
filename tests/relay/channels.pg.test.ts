import { Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import { readiness } from '#lib/server/readiness.ts'
import { bumpSequence, signElsewhere } from '../support/elsewhere.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { serveJobs } from './relay-service.ts'

const fixture = await serveJobs({ channels: 6, prepared: 2 })
beforeAll(async () => {
  // Two channels can pay. The others lack an account, a registration, a balance, or unused sequence numbers.
  const [, , , unregistered, empty, burned] = fixture.channels
  if (!unregistered || !empty || !burned) throw new Error('a channel is missing')
  await fetch(`${fixture.ledger.network.friendbotUrl}?addr=${unregistered.publicKey()}`)
  await Promise.all([enrol(fixture.ledger.network, empty), enrol(fixture.ledger.network, burned)])
  const last = Operation.bumpSequence({ bumpTo: String(2n ** 63n - 1n) })
  await signElsewhere(fixture.ledger.network, burned, { operation: last })
})

async function paidBy(job: string): Promise<(string | null)[]> {
  const lines = await fixture.db.query.relayLines.findMany({ where: (line, { eq }) => eq(line.job, job) })
  return lines.map(({ channel }) => channel)
}

test.each([-300, 300])('a service whose clock is off by %i s sees the relays that run', async (seconds) => {
  await using _relay = await fixture.relay()
  const now = () => new Date(Date.now() + seconds * 1000)
  const read = async () => (await readiness({ ...fixture.running, now })).relay
  await expect.poll(read).toMatchObject({ ok: true, channels: 6 })
})

test('pays lines from the channels that can pay, and names the other channels’ problems in /ready', async () => {
  await using _relay = await fixture.relay()
  const { client, payee, job: jobId } = await fixture.start(1, 2, 4, 8, 16, 32)
  await expectJobPaidOnce(fixture, client, jobId, [payee, 63n])
  expect(new Set(await paidBy(jobId))).toEqual(new Set([fixture.addressOf(0), fixture.addressOf(1)]))
  const problems = async () => String((await readiness({ ...fixture.running })).relay.problem)
  await expect
    .poll(problems)
    .toBe(
      [
        `${fixture.addressOf(2)}: account`,
        `${fixture.addressOf(3)}: registration`,
        `${fixture.addressOf(4)}: balance`,
        `${fixture.addressOf(5)}: sequence`,
      ]
        .toSorted()
        .join('; '),
    )
  expect((await readiness({ ...fixture.running })).relay).toMatchObject({ ok: true, channels: 6 })
})

test('fails only the line that exceeds every channel’s balance, and records no channel problem', async () => {
  await using _relay = await fixture.relay()
  const { client, payee, job: jobId } = await fixture.start(3, 2 ** 53 - 1, 4)
  expect(await fixture.ended(client, jobId)).toMatchObject({
    status: 'failed',
    error: 'transfer 1: no channel has enough to pay it',
    results: [{ status: 'SUCCESS' }, { i: 1, hash: '', status: 'FAILED' }, { status: 'SUCCESS' }],
  })
  expect(await fixture.received(payee)).toBe(7n)
  const channels = await fixture.db.query.relayChannels.findMany()
  const fit = channels.filter(({ problem }) => problem === null).map(({ address }) => address)
  // The dashboard lists these channels, so that an operator can fund them.
  const failed = await fixture.db.query.relayLines.findMany({ where: (line, { eq }) => eq(line.outcome, 'failed') })
  expect(failed.map(({ unable }) => new Set(unable))).toEqual([new Set([fixture.addressOf(0), fixture.addressOf(1)])])
  expect(fit).toEqual(expect.arrayContaining([fixture.addressOf(0), fixture.addressOf(1)]))
  expect((await fixture.post(client, { amounts: [1] })).status).toBe(200)
})

test('fails a line whose recipient is not registered', async () => {
  await using _relay = await fixture.relay()
  const client = await fixture.client()
  await fixture.hire(client, [fixture.addressOf(3)])
  const jobId = await fixture.begin(client, 3)
  expect(await fixture.ended(client, jobId)).toMatchObject({
    status: 'failed',
    error: 'transfer 0: the recipient’s account is not registered with the token',
  })
})

test('pays a line again, once, when another program uses up its sequence number: payments go on by themselves', async () => {
  const { client, payee } = await fixture.engaged()
  let burnt = 0
  fixture.ledger.proxy.rule(async (call): Promise<Fault> => {
    if (call.method !== 'sendTransaction' || burnt > 0) return 'pass'
    burnt += 1
    const { transaction } = call.params as { transaction: string }
    const bump = TransactionBuilder.fromXdr(transaction, fixture.ledger.network.passphrase)
    const source = 'innerTransaction' in bump ? bump.innerTransaction.source : bump.source
    await bumpSequence(fixture.ledger.network, fixture.channel(source))
    return 'pass'
  })
  const resumed = await fixture.beforeStop()
  await using _relay = await fixture.relay()
  const jobId = await fixture.begin(client, 1, 2, 4, 8)
  // The other program's transaction has paid nothing, as its channel's events show.
  expect(await resumed()).toEqual({ found: 0 })
  expect(burnt).toBe(1)
  await expectJobPaidOnce(fixture, client, jobId, [payee, 15n])
})

test('merges a channel’s received balance when its spendable balance is too low', async () => {
  await using _relay = await fixture.relay()
  const client = await fixture.client()
  // Without contractors the channels pay only each other.
  for (const amounts of [[9_000_000_000_000], [9_000_000_000_000], [9_000_000_000_000]]) {
    const jobId = await fixture.begin(client, ...amounts)
    await expectJobPaidOnce(fixture, client, jobId)
  }
})
