import { Keypair, Networks, TransactionBuilder } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { afterEach, expect, test, vi } from 'vitest'
import { transfers } from '#drizzle/schema/transfers.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { startJob } from '#lib/relay/job.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { runChore } from '#lib/server/maintenance.ts'
import { startRelay } from '#lib/server/relay.ts'
import { provideService } from '#lib/server/services.ts'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import { buildDeposit, buildRegister } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import { MAX_RESOURCE_FEE } from '#lib/wallet/transaction.ts'
import { captureLog } from '../support/console.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { freePort } from '../support/port.ts'
import { watchProver } from './provers.ts'
import { openRelayService, serveJobs } from './relay-service.ts'
import { OFTEN, SHORT_TIMES } from './short-times.ts'

const fixture = await serveJobs({ channels: 1 })
afterEach(() => {
  vi.restoreAllMocks()
})

async function signUp() {
  const { client, payee } = await fixture.engaged()
  const post = (...amounts: number[]) => fixture.begin(client, ...amounts)
  /** Waits for a job, after which the payee has received `total`. */
  const expectPaid = (job: string, total: bigint) => expectJobPaidOnce(fixture, client, job, [payee, total])
  return { client, post, expectPaid }
}

test('does not touch a line that is sealed to another key, and fails it after a day', async () => {
  const key = publicHalf(generateRelayKey())
  const batch = { key, relayKey: await keyIdOf(key) }
  const { post, expectPaid } = await signUp()
  const identity = { kind: 'ledger', sub: Keypair.random().publicKey() } as const
  const stranger = { identity, organisation: undefined }
  const sealed = await startJob({ db: fixture.db, batch, user: stranger, now: new Date() }, { amounts: [5] })
  await using _relay = await fixture.relay()
  // The relay pays a line that was queued later.
  await expectPaid(await post(1), 1n)
  expect(await fixture.linesOf(sealed.jobId)).toMatchObject([{ state: 'waiting', channel: null, error: null }])
  await fixture.db.execute(
    sql`UPDATE relay_lines SET queued_at = queued_at - interval '25 hours' WHERE job = ${sealed.jobId}`,
  )
  await runChore(fixture.running, 'lines')
  expect(await fixture.linesOf(sealed.jobId)).toMatchObject([{ state: 'failed', error: 'too-late' }])
})

/** Deposits into the confidential balance of the channel. */
async function deposit(amount: bigint): Promise<void> {
  const { network, devnet } = fixture.ledger
  const issuer = Keypair.fromSecret(devnet.issuerSecret)
  const { signedXdr } = await buildDeposit(network, issuer, { to: fixture.addressOf(0), amount })
  await sendAndWait(network, signedXdr)
}

/** Whether the wallet or the sponsor simulates a transfer with this call. */
function simulatesTransfer({ method, params }: Call): boolean {
  if (method !== 'simulateTransaction') return false
  const built = TransactionBuilder.fromXdr(String(params.transaction), Networks.STANDALONE)
  return built.toXdr().length > 10_000
}

const STALE = { answer: { latestLedger: 1, error: 'HostError: Error(Contract, #3506)' } }
const NO_EVENTS = { rewrite: (page: Record<string, unknown>) => ({ ...page, events: [] }) }

test('never fails a line because of responses from a lagging node', async () => {
  await using _relay = await fixture.relay()
  const { post, expectPaid } = await signUp()
  let stale = 0
  fixture.ledger.proxy.rule((call): Fault => {
    if (!simulatesTransfer(call) || stale >= 20) return 'pass'
    stale += 1
    return STALE
  })
  await expectPaid(await post(7), 7n)
  expect(stale).toBe(20)
})

test('signs no transfer that needs a resource fee above SPONSOR_MAX_FEE', async () => {
  await using _relay = await fixture.relay({ times: OFTEN })
  const { client, post } = await signUp()
  // The wallet adds a margin to this.
  const minResourceFee = String(MAX_RESOURCE_FEE)
  fixture.ledger.proxy.rule((call) =>
    simulatesTransfer(call) ? { rewrite: (simulation) => ({ ...simulation, minResourceFee }) } : 'pass',
  )
  const job = await post(7)
  expect(await fixture.ended(client, job)).toMatchObject({ status: 'failed' })
  expect(await fixture.linesOf(job)).toMatchObject([{ state: 'failed', error: 'resource-fee-cap' }])
})

test('keeps a channel’s stored balance after a failed simulation when the RPC has lost its events', async () => {
  await using _relay = await fixture.relay()
  const { post, expectPaid } = await signUp()
  await expectPaid(await post(2), 2n)
  let stale = 0
  fixture.ledger.proxy.rule((call): Fault => {
    if (call.method === 'getEvents') return NO_EVENTS
    if (!simulatesTransfer(call) || stale > 0) return 'pass'
    stale += 1
    return STALE
  })
  await expectPaid(await post(5), 7n)
  expect(stale).toBe(1)
})

test('fails a line above the channel’s last known balance when the RPC has lost its events', async () => {
  const { client, post, expectPaid } = await signUp()
  await using _relay = await fixture.relay({ times: OFTEN })
  await expectPaid(await post(2), 2n)
  fixture.ledger.proxy.rule(({ method }) => (method === 'getEvents' ? NO_EVENTS : 'pass'))
  const job = await post(Number(CHANNEL_FUNDS))
  expect(await fixture.ended(client, job)).toMatchObject({ status: 'failed' })
  expect(await fixture.linesOf(job)).toMatchObject([{ state: 'failed', error: 'channels-short' }])
})

/** The maximum number of ledgers that a node lags. */
const MAX_BEHIND = 10

/**
 * Makes the RPC show this account’s entry as of now until the line of `job` has been doubted for as many ledgers as a node
 * can lag.
 */
async function lagBehind(address: string, job: string): Promise<void> {
  const key = accountKey(fixture.ledger.network.token, address)
  const { entries, latestLedger } = await fixture.ledger.network.rpc.getLedgerEntries(key)
  const [now] = entries
  const known = key.toXdr('base64')
  const entry = now?.val.toXdr('base64')
  let end = Number.POSITIVE_INFINITY
  const isOver = async () => {
    const { sequence } = await fixture.ledger.network.rpc.getLatestLedger()
    if (end === Number.POSITIVE_INFINITY && (await isDoubted(job))) end = sequence + MAX_BEHIND
    return sequence >= end
  }
  fixture.ledger.proxy.rule(async ({ method, params }): Promise<Fault> => {
    if (method !== 'getEvents' && method !== 'getLedgerEntries') return 'pass'
    if (await isOver()) return 'pass'
    if (method === 'getEvents') {
      const { pagination } = params as { pagination?: { cursor?: string } }
      return {
        rewrite: (page) => {
          const events = (page.events as { ledger: number; id: string }[]).filter(
            (event) => event.ledger <= latestLedger,
          )
          return { ...page, events, cursor: events.at(-1)?.id ?? pagination?.cursor ?? page.cursor }
        },
      }
    }
    const asThen = (found: { key: string; xdr: string }) =>
      found.key !== known ? [found] : entry === undefined ? [] : [{ ...found, xdr: entry }]
    return {
      rewrite: (answer) => ({ ...answer, entries: (answer.entries as { key: string; xdr: string }[]).flatMap(asThen) }),
    }
  })
}

async function isDoubted(job: string): Promise<boolean> {
  const [line] = await fixture.linesOf(job)
  return line === undefined || line.doubtedLedger !== null
}

test('does not fail a line because a lagging node shows too low a balance', async () => {
  const { post, expectPaid } = await signUp()
  const first = await fixture.relay()
  await expectPaid(await post(3), 3n)
  await first.close()
  const amount = Number(CHANNEL_FUNDS) + 5
  const job = await post(amount)
  await lagBehind(fixture.addressOf(0), job)
  await deposit(1_000n)
  await using _relay = await fixture.relay({ times: OFTEN })
  await expectPaid(job, BigInt(amount) + 3n)
  // Restores the channel's funds for the tests that follow.
  await deposit(CHANNEL_FUNDS)
})

test('does not fail an old line because a lagging node shows its recipient as unregistered', async () => {
  const client = await fixture.client()
  const payee = Keypair.random()
  await fetch(`${fixture.ledger.network.friendbotUrl}?addr=${payee.publicKey()}`)
  await fixture.hire(client, [payee.publicKey()])
  const job = await fixture.begin(client, 6)
  await fixture.db.execute(sql`UPDATE relay_lines SET queued_at = queued_at - interval '1 minute' WHERE job = ${job}`)
  await lagBehind(payee.publicKey(), job)
  const holder = openHolder(payee, fixture.ledger.network.token)
  const register = await buildRegister(fixture.ledger.network, holder, { auditorId: fixture.ledger.network.auditorId })
  await sendAndWait(fixture.ledger.network, register.signedXdr)
  await using _relay = await fixture.relay({ times: OFTEN })
  await expectJobPaidOnce(fixture, client, job, [holder, 6n])
})

test('pays a line whose payee is unregistered while its payment is proved, and registers again', async () => {
  const { prover, begun, release } = watchProver({ from: 1 })
  await using _relay = await fixture.relay({ prover, times: OFTEN })
  const { client, payee, job } = await fixture.start(10)
  await begun
  const registration = accountKey(fixture.ledger.network.token, payee.address).toXdr('base64')
  let refused = 0
  fixture.ledger.proxy.rule((call): Fault => {
    if (simulatesTransfer(call)) {
      refused += 1
      return { answer: { latestLedger: 1, error: 'HostError: Error(Contract, #3501)' } }
    }
    if (call.method !== 'getLedgerEntries') return 'pass'
    const isLeft = ({ key }: { key: string }) => key !== registration
    return { rewrite: (answer) => ({ ...answer, entries: (answer.entries as { key: string }[]).filter(isLeft) }) }
  })
  release()
  await expect.poll(() => isDoubted(job)).toBe(true)
  expect(refused).toBe(1)
  fixture.ledger.proxy.rule(null)
  await expectJobPaidOnce(fixture, client, job, [payee, 10n])
})

test('stops while it waits for a merge and the RPC shows no new ledger', async () => {
  const { post, expectPaid } = await signUp()
  // The channel receives its funds again, and must merge before it can pay all of them.
  const job = await post(Number(CHANNEL_FUNDS))
  await deposit(CHANNEL_FUNDS)
  let looks = 0
  fixture.ledger.proxy.rule((call): Fault => {
    if (call.method !== 'getTransaction') return 'pass'
    looks += 1
    const history = { latestLedger: 5, latestLedgerCloseTime: '5', oldestLedger: 1, oldestLedgerCloseTime: '1' }
    return { answer: { status: 'NOT_FOUND', ...history } }
  })
  const relay = await fixture.relay()
  await expect.poll(() => looks).toBeGreaterThan(2)
  await relay.close()
  fixture.ledger.proxy.rule(null)
  await using _other = await fixture.relay()
  await expectPaid(job, CHANNEL_FUNDS)
})

test('leaves a line to another host once its prover has hung for too long, and pays nothing when that ends', async () => {
  const { prover, begun, release } = watchProver({ from: 1 })
  const { post, expectPaid } = await signUp()
  const job = await post(9)
  {
    await using _hanging = await fixture.relay({ prover, times: { ...SHORT_TIMES, longestLease: 1 } })
    await begun
    expect(await fixture.linesOf(job)).toMatchObject([{ state: 'preparing' }])
    await using _other = await fixture.relay()
    await expectPaid(job, 9n)
    release()
  }
  expect(await fixture.db.$count(transfers, eq(transfers.lineJob, job))).toBe(1)
})

test('stops while its prover hangs, and another relay pays the line', async () => {
  const { prover, begun } = watchProver({ from: 1 })
  const relay = await fixture.relay({ prover })
  const { post, expectPaid } = await signUp()
  const job = await post(9)
  await begun
  await relay.close()
  await using _other = await fixture.relay()
  await expectPaid(job, 9n)
})

test('retries the preparation of a channel until it succeeds', async () => {
  const bare = await openRelayService({ channels: 2, prepared: 0 })
  const port = await freePort()
  let refused = 0
  bare.ledger.proxy.rule((call): Fault => {
    if (call.method !== 'getNetwork' || refused >= 3) return 'pass'
    refused += 1
    return { rewrite: (result) => ({ ...result, friendbotUrl: `http://127.0.0.1:${port}/` }) }
  })
  const relay = await startRelay(bare.running, { prover, prepares: true, times: SHORT_TIMES })
  try {
    const client = await bare.client()
    const { jobId } = (await bare.post(client, { amounts: [5, 6] })).body as { jobId: string }
    expect(await bare.ended(client, jobId)).toMatchObject({ status: 'completed' })
    expect(refused).toBe(3)
  } finally {
    await relay.close()
    await bare.close()
    provideService(Promise.resolve(fixture.running))
  }
})

test('proves each line once, and logs how many are left', async () => {
  const lines = captureLog()
  const prove = vi.fn(prover.prove)
  await using _relay = await fixture.relay({ prover: { prove } })
  const { post, expectPaid } = await signUp()
  await expectPaid(await post(1, 2, 4, 8), 15n)
  expect(prove).toHaveBeenCalledTimes(4)
  expect(lines.filter((line) => line.includes('"proving"')).length).toBe(4)
  expect(lines.some((line) => line.includes('proving 2 of 4'))).toBe(true)
})
