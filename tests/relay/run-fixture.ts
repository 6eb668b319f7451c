import { randomUUID } from 'node:crypto'
import { inArray, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, onTestFailed, vi } from 'vitest'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { openArchive, readCoverage } from '#lib/archive/history.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import type { BatchProgress } from '#lib/directory/batches/status.ts'
import { readDelegations } from '#lib/wallet/account.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDelegation, buildRevocation, buildTransfer } from '#lib/wallet/calls.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { hashSeal, type Manifest, signManifest } from '#lib/wallet/manifest.ts'
import { readSeal, sealPayout } from '#lib/wallet/seal.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { readLines } from '../support/lines.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

type Payout = BatchWithPayouts['payouts'][number]

/** A batch of an employer, with its amounts sealed to the channels. */
export interface RunBatch {
  id: string
  employer: SignedInPayer
  payees: Holder[]
  payouts: Payout[]
  /** the first of them */
  first: Payout
}

export type RunFixture = ReturnType<typeof openRunFixture>

/** The service of a file's tests, and what employers do on it. */
export let service: RelayService
export let runs: RunFixture

/** Opens them before the tests of the file that calls this, with channels that a relay has announced, and closes them afterwards. */
export function serveRuns({ areAnnounced = true } = {}): void {
  beforeAll(async () => {
    service = await openRelayService({ channels: 2 })
    runs = openRunFixture(service)
    if (areAnnounced) await runs.announce()
  })
  afterAll(() => service?.close())
  afterEach(() => service.ledger.proxy.rule(null))
}

/** What an employer does before a run, and the run itself, on the service of `fixture`. */
export function openRunFixture(fixture: RelayService) {
  const { network } = fixture.ledger
  const [first] = fixture.channels
  if (!first) throw new Error('a run needs a channel')
  const defaultChannel = first.publicKey()

  const seal = (batch: string, contractor: string, amount: bigint, spender = defaultChannel, key = fixture.key) =>
    sealPayout(publicHalf(key), { batch, contractor, spender }, amount)

  async function ask<Body = Record<string, unknown>>(
    { session }: Pick<SignedInPayer, 'session'>,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: unknown,
  ) {
    const answer = await fixture.ask<Body>(method, path, { session, ...(body !== undefined && { body }) })
    return { status: answer.status, body: answer.body }
  }

  /** A batch that is `ready`, with a payout to a new payee for each amount; `channels` are used in turn. */
  async function batchOf(
    employer: SignedInPayer,
    amounts: readonly bigint[],
    given: { channels?: readonly string[]; payees?: readonly Holder[]; like?: RunBatch } = {},
  ): Promise<RunBatch> {
    const { channels = [defaultChannel] } = given
    const payees = given.like?.payees ?? given.payees ?? (await Promise.all(amounts.map(() => enrol(network))))
    const engage = async ({ address }: Holder) => {
      const { body } = await ask<{ id: string }>(employer, 'POST', '/contractors', { name: randomUUID(), address })
      return body.id
    }
    const contractors =
      given.like?.payouts.map(({ contractorId }) => contractorId) ?? (await Promise.all(payees.map(engage)))
    const { body: batch } = await ask<{ id: string }>(employer, 'POST', '/batches', { name: 'a run' })
    const instructions = await Promise.all(
      amounts.map(async (amount, index) => {
        const contractorId = contractors[index] ?? ''
        const channel = channels[index % channels.length]
        return { contractorId, encryptedAmount: await seal(batch.id, contractorId, amount, channel) }
      }),
    )
    await ask(employer, 'POST', `/batches/${batch.id}/instructions`, { instructions })
    await ask(employer, 'POST', `/batches/${batch.id}/ready`)
    const { payouts } = await read({ id: batch.id, employer })
    const [first] = payouts
    if (!first) throw new Error('the batch has no payout')
    return { id: batch.id, employer, payees: [...payees], payouts, first }
  }

  async function read({ id, employer }: Pick<RunBatch, 'id' | 'employer'>): Promise<BatchWithPayouts> {
    return (await ask<BatchWithPayouts>(employer, 'GET', `/batches/${id}`)).body
  }

  /** Delegates an amount to a channel, until `ledgers` after the latest one. Resolves to the last of them. */
  async function delegate(
    employer: Holder,
    amount: bigint,
    channel = defaultChannel,
    ledgers = 20_000,
  ): Promise<number> {
    const { sequence } = await network.rpc.getLatestLedger()
    const { spendable } = await syncBalance(network, employer)
    const delegation = { spender: channel, amount, liveUntilLedger: sequence + ledgers, opening: spendable }
    await sendAndWait(network, (await buildDelegation(network, employer, delegation)).signedXdr)
    return sequence + ledgers
  }

  async function revoke(employer: Holder, channel = defaultChannel): Promise<void> {
    await sendAndWait(network, (await buildRevocation(network, employer.signer, channel)).signedXdr)
  }

  /** The manifest of what a batch has left to pay, as its employer builds it. */
  async function manifestOf(batch: RunBatch): Promise<Manifest> {
    const { payouts } = await read(batch)
    const left = payouts.filter(({ status }) => status === 'ready' || status === 'failed')
    const lines = left.map(({ id: payout, contractorId: contractor, address = '', encryptedAmount = '' }) => {
      const channel = readSeal(encryptedAmount)?.spender ?? ''
      return { payout, contractor, address, channel, sealHash: hashSeal(encryptedAmount) }
    })
    const channels = [...new Set(lines.map(({ channel }) => channel))].filter((channel) => channel !== '')
    const owner = batch.employer.address
    const pairs = channels.map((spender) => ({ owner, spender }))
    const { delegations } = pairs.length > 0 ? await readDelegations(network, pairs) : { delegations: [] }
    return {
      passphrase: network.passphrase,
      token: network.token,
      batch: batch.id,
      account: owner,
      delegations: channels.map((channel, index) => {
        return { channel, liveUntilLedger: delegations[index]?.live_until_ledger ?? 0 }
      }),
      payouts: lines,
    }
  }

  /** Signs the manifest and asks for the run. */
  async function run<Body = BatchProgress>(batch: RunBatch, changes: Partial<Manifest> = {}) {
    const manifest = { ...(await manifestOf(batch)), ...changes }
    const signature = await signManifest(keypairSigner(batch.employer.signer), manifest)
    // The relay may have stopped: its channels count as announced, however long ago that was.
    await fixture.db.update(relayChannels).set({ seenAt: sql`clock_timestamp()` })
    return await ask<Body>(batch.employer, 'POST', `/batches/${batch.id}/run`, { signature })
  }

  const jobsOf = (batch: Pick<RunBatch, 'id'>) =>
    fixture.db.query.relayJobs.findMany({ where: (job, { eq }) => eq(job.batch, batch.id) })

  async function linesOf(batch: Pick<RunBatch, 'id'>) {
    const ids = (await jobsOf(batch)).map(({ id }) => id)
    return await readLines(fixture.db, inArray(relayLines.job, ids))
  }

  /**
   * A batch of a new employer with these amounts.
   * @param escrow what the employer delegates: their sum by default
   */
  async function delegated(amounts: readonly bigint[], escrow = amounts.reduce((sum, amount) => sum + amount, 0n)) {
    const employer = await fixture.employ()
    const batch = await batchOf(employer, amounts)
    await delegate(employer, escrow)
    return { employer, batch, payout: batch.first }
  }

  /** `delegated`, and its run is queued. */
  async function begin(amounts: readonly bigint[], escrow?: bigint) {
    const { batch, ...others } = await delegated(amounts, escrow)
    expect(await run(batch)).toMatchObject({ status: 200 })
    const [[line], [job]] = [await linesOf(batch), await jobsOf(batch)]
    if (!line || !job) throw new Error('no run was queued')
    return { ...others, batch, line, job }
  }

  /** Signs the payment of a payout from the employer's own balance. */
  async function signPayment(employer: Holder, { address: to = '' }: Payout, amount: bigint) {
    const { spendable: opening } = await syncBalance(network, employer)
    return await buildTransfer(network, employer, { to, amount, opening })
  }

  /** Waits until the archive of the service has every ledger so far. */
  async function untilArchived(): Promise<void> {
    const { archive: context } = fixture.running
    if (!context) throw new Error('the service has no archive')
    const { sequence } = await network.rpc.getLatestLedger()
    for (;;) {
      await ingest(context)
      const archive = await openArchive(fixture.db, context.token)
      const coverage = archive && (await readCoverage(fixture.db, archive))
      if (coverage && coverage.ingestedThrough >= sequence && coverage.gaps === 0) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  return {
    fixture,
    network,
    untilArchived,
    delegated,
    begin,
    /** Runs a relay until it has announced all channels for runs. */
    announce: async () => {
      await using _relay = await fixture.relay()
      const areAnnounced = async () => (await fixture.db.query.relayChannels.findMany()).every((one) => one.runs)
      await vi.waitUntil(areAnnounced, { timeout: 300_000 })
    },
    channel: defaultChannel,
    seal,
    ask,
    batchOf,
    read,
    delegate,
    revoke,
    manifestOf,
    run,
    jobsOf,
    linesOf,
    employer: (balance?: bigint) => fixture.employ(balance),
    cancel: ({ employer }: RunBatch, { id }: Payout) => ask(employer, 'DELETE', `/payouts/${id}`),
    /** Waits until every run of the batch has ended; resolves to the batch. */
    ended: async (batch: RunBatch): Promise<BatchWithPayouts> => {
      onTestFailed(async () => console.error('the lines of the run:', await linesOf(batch)))
      for (;;) {
        if ((await jobsOf(batch)).every(({ status }) => status !== 'running')) return await read(batch)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    received: ({ payees }: RunBatch) => Promise.all(payees.map((payee) => fixture.received(payee))),
    /** The spendable balance of an employer, by the ledger. */
    spendable: async (employer: Holder) => (await syncBalance(network, employer)).spendable.value,
    /** Pays the payee of a payout from the employer's own balance, without the service. */
    payDirectly: async (employer: Holder, payout: Payout, amount: bigint): Promise<void> => {
      await sendAndWait(network, (await signPayment(employer, payout, amount)).signedXdr)
    },
    signPayment,
    /** Pays a payout from the employer's own balance. */
    pay: async (employer: SignedInPayer, payout: Payout, amount: bigint) => {
      const signed = await signPayment(employer, payout, amount)
      return await fixture.ask('POST', '/transfer', {
        session: employer.session,
        body: { signedXDR: signed.signedXdr, payoutId: payout.id },
      })
    },
  }
}
