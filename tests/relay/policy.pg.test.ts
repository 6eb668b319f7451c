import { Keypair } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { sponsorFloats } from '#drizzle/schema/transfers.ts'
import { insertRows, itemRow, jobRow } from '#lib/cli/seed/rows.ts'
import { LineError } from '#lib/relay/line-error.ts'
import { readiness } from '#lib/server/readiness.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import type { LinePayment } from '#lib/transfers/record.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { type ChannelTransfer, sponsorChannel, sponsorTransfer, type TransferContext } from '#lib/transfers/submit.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { expectJobPaidOnce, quotaOf } from '../support/paid-once.ts'
import { watchProver } from './provers.ts'
import { serveJobs } from './relay-service.ts'

const fixture = await serveJobs({ channels: 2 })
const { sponsor, tracker } = fixture.running
const context: TransferContext = { sponsor, tracker, waitMs: 20_000 }
const quotaAccount = Keypair.random().publicKey()
// No relay has the key of this job.
const job = jobRow()
await insertRows(fixture.db, { jobs: [job], items: [itemRow({ job: job.id, quotaAccount })] })
const line: LinePayment = { job: job.id, position: 0, sealedOpening: null, claim: async () => undefined }

const readLine = async () => (await fixture.linesOf(line.job))[0]

/** A transfer that a channel has signed. */
async function transferOf(channel: number) {
  const signer = fixture.channels[channel]
  if (!signer) throw new Error('no such channel')
  const holder = openHolder(signer, fixture.ledger.network.token)
  const { spendable } = await syncBalance(fixture.ledger.network, holder)
  return await buildTransfer(fixture.ledger.network, holder, {
    to: fixture.addressOf(1 - channel),
    amount: 5n,
    opening: spendable,
  })
}

const rowOf = async (hash: string) => (await findTransferOfHash(fixture.db, hash))?.transfer

const ask = (channel: number, signedXDR: string, more: Partial<ChannelTransfer> = {}) =>
  sponsorChannel(context, { channel: fixture.addressOf(channel), quotaAccount, line, signedXDR, ...more })

test('refuses a channel’s transfer on POST /transfer', async () => {
  const { signedXdr, hash } = await transferOf(0)
  const asked = sponsorTransfer(context, decodeInner(signedXdr, fixture.ledger.network.passphrase))
  await expect(asked).rejects.toMatchObject({ code: 'own-address' })
  expect(await rowOf(hash)).toBeUndefined()
})

test('sponsors a channel’s transfer for the relay, as that channel only', async () => {
  const { signedXdr, hash } = await transferOf(0)
  await expect(ask(1, signedXdr)).rejects.toMatchObject({ code: 'source-mismatch' })
  const id = await ask(0, signedXdr)
  await expect.poll(async () => (await rowOf(hash))?.status).toBe('succeeded')
  const row = await rowOf(hash)
  expect(row).toMatchObject({ id, quotaAccount, account: fixture.addressOf(0), lineJob: line.job, linePosition: 0 })
  expect(await readLine()).toMatchObject({ state: 'paid', hash: row?.hash })
  expect(await ask(0, signedXdr)).toBe(id)
  expect(await quotaOf(fixture, quotaAccount)).toMatchObject({ count: 1, held: 0n })
  expect(await quotaOf(fixture, fixture.addressOf(0))).toBeUndefined()
})

test('does not record a payment that was found on the ledger as one to be sent, if its node does not know it yet', async () => {
  const { signedXdr, hash } = await transferOf(1)
  const found = ask(1, signedXdr, { onFound: async () => undefined })
  await expect(found).rejects.toMatchObject({ name: 'LedgerError', code: 'unavailable' })
  expect(await rowOf(hash)).toBeUndefined()
})

test('records nothing and uses no quota if the transfer may not pay its line', async () => {
  const before = await fixture.db.query.quotas.findMany()
  const { signedXdr, hash } = await transferOf(1)
  const claim = async () => {
    throw new LineError('line-gone', 'another transfer pays it')
  }
  const asked = ask(1, signedXdr, { line: { ...line, claim } })
  await expect(asked).rejects.toMatchObject({ code: 'line-gone' })
  expect(await rowOf(hash)).toBeUndefined()
  expect(await fixture.db.query.quotas.findMany()).toEqual(before)
})

test('keeps a line’s proof while the float is exhausted, then pays the job with it', async () => {
  const sponsor = fixture.ledger.sponsor.publicKey()
  await fixture.db.insert(sponsorFloats).values({ sponsor }).onConflictDoNothing()
  await fixture.db.execute(sql`UPDATE sponsor_floats SET held = held + 1000000000000000`)
  const { prover, count } = watchProver()
  await using _relay = await fixture.relay({ prover })
  const client = await fixture.client()
  const jobId = await fixture.begin(client, 5)
  const refusals = async () => {
    const noted = await fixture.db.query.refusals.findMany()
    return noted.reduce((sum, { reason, count }) => sum + (reason === 'float' ? count : 0), 0)
  }
  await expect.poll(refusals).toBeGreaterThan(3)
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })
  await fixture.db.execute(sql`UPDATE sponsor_floats SET held = held - 1000000000000000`)
  await expectJobPaidOnce(fixture, client, jobId)
  expect(count()).toBe(1)
})

test('/ready is not ok without a running relay, and names channels that cannot pay', async () => {
  await fixture.db.execute(sql`UPDATE relay_channels SET problem = 'registration', seen_at = now()`)
  const problems = [fixture.addressOf(0), fixture.addressOf(1)].toSorted().map((address) => `${address}: registration`)
  const unfit = { ok: false, channels: 2, runs: true, problem: `no channel can pay; ${problems.join('; ')}` }
  expect((await readiness({ ...fixture.running })).relay).toEqual(unfit)
  await fixture.db.execute(sql`UPDATE relay_channels SET seen_at = now() - interval '61 seconds'`)
  const { ok, relay } = await readiness({ ...fixture.running })
  const problem = 'no relay is running; no channel can pay'
  expect([ok, relay]).toEqual([false, { ok: false, channels: 0, runs: false, problem }])
})
