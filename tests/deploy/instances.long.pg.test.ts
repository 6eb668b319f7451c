import { spawn } from 'node:child_process'
import { Transaction, TransactionBuilder } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { openRelayService, type RelayService } from '../relay/relay-service.ts'
import { type Balancer, startBalancer } from '../support/balancer.ts'
import { expectJobPaidOnce, expectSponsoredOnce, quotaOf } from '../support/paid-once.ts'
import { freePort } from '../support/port.ts'
import { type Program, startProgram } from '../support/program.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { chargeQuota, findDiscrepancies } from '../transfers/quota-ledger.ts'
import { seededRandom } from '../transfers/random.ts'

const QUOTA = 20

let balancer: Balancer
let fixture: RelayService
let instances: string[]
let programs: Program[]
let relay: Awaited<ReturnType<RelayService['relay']>>

beforeAll(async () => {
  balancer = await startBalancer(seededRandom(20_261_120))
  fixture = await openRelayService({
    channels: 2,
    variables: { PUBLIC_URL: balancer.url, SPONSOR_QUOTA_TRANSFERS: String(QUOTA), TRANSFER_WAIT: '250' },
  })
  relay = await fixture.relay()
  const ports = [await freePort(), await freePort()]
  instances = ports.map((port) => `http://localhost:${port}`)
  const starting = await Promise.allSettled(
    ports.map((port) => startProgram(`http://localhost:${port}`, { ...fixture.variables, PORT: String(port) })),
  )
  // If one instance fails to start, stop the other too: it would keep the run from ending.
  programs = starting.filter((each) => each.status === 'fulfilled').map(({ value }) => value)
  const failed = starting.find((each) => each.status === 'rejected')
  if (failed) throw failed.reason
  balancer.spread(instances)
})
afterAll(async () => {
  for (const program of programs ?? []) await program.kill()
  await relay?.close()
  await fixture?.close()
  await balancer?.close()
})

interface Answer<Body = Record<string, unknown>> {
  status: number
  body: Body
}

async function ask<Body = Record<string, unknown>>(
  base: string,
  session: string | undefined,
  path: string,
  body?: unknown,
): Promise<Answer<Body>> {
  const response = await fetch(`${base}/api${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(session !== undefined && { Authorization: `Bearer ${session}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Body }
}

/** Sends the same request to every instance concurrently; resolves to the responses sorted by status. */
async function atOnce<Body = Record<string, unknown>>(session: string | undefined, path: string, body?: unknown) {
  const answers = await Promise.all(instances.map((base) => ask<Body>(base, session, path, body)))
  return answers.sort((one, other) => one.status - other.status)
}
const statuses = (answers: Answer<unknown>[]) => answers.map(({ status }) => status)

/** How many times the sponsor paid for each inner transaction, according to the ledger. */
async function readFeeBumps(): Promise<string[]> {
  const { rpc, passphrase } = fixture.ledger.network
  const { oldestLedger } = await rpc.getHealth()
  const inner: string[] = []
  let page = await rpc.getTransactions({ startLedger: oldestLedger, pagination: { limit: 200 } })
  for (;;) {
    for (const { envelopeXdr } of page.transactions) {
      const built = TransactionBuilder.fromXdr(envelopeXdr.toXdr('base64'), passphrase)
      if ('innerTransaction' in built) inner.push(Buffer.from(built.innerTransaction.hash()).toString('hex'))
    }
    if (page.transactions.length < 200) return inner
    page = await rpc.getTransactions({ pagination: { cursor: page.cursor, limit: 200 } })
  }
}

/** Requires ledger, transfers, payouts and quotas to agree: nothing is lost or duplicated. */
async function expectOneTruth(): Promise<void> {
  const transfers = (await fixture.db.query.transfers.findMany()).filter(({ sponsor }) => sponsor !== null)
  expect(transfers.filter(({ status }) => status !== 'succeeded')).toEqual([])
  expect((await readFeeBumps()).sort()).toEqual(transfers.map(({ applied }) => applied).sort())
  expect(await findContradictions(fixture.db)).toEqual([])
  expect(await findDiscrepancies(fixture.db)).toEqual([])
  const floats = await fixture.db.query.sponsorFloats.findMany()
  expect(floats.map(({ held }) => held)).toEqual(floats.map(() => 0n))
}

test('runs the demo with its requests spread over two instances', async () => {
  const { port } = new URL(fixture.ledger.devnet.url)
  const demo = spawn(process.execPath, ['lib/cli/demo.ts', '--once'], {
    env: { ...process.env, PUBLIC_URL: balancer.url, DEVNET_PORT: port },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [demo.stdout, demo.stderr]) {
    stream.on('data', (data: Buffer) => {
      output += data
    })
  }
  const code = await new Promise((resolve) => demo.once('close', resolve))
  // This ledger's document names no relay, so the demo cannot delegate to one.
  expect(output).toContain('SKIPPED: the run (the deployment document names no relay)')
  expect(output).toContain('What was shown is as promised: five confidential payments')
  expect(output).toContain("The relay's batch is completed")
  expect(code).toBe(0)
  expect(Math.min(...balancer.counts)).toBeGreaterThanOrEqual(15)
  const sponsored = (await fixture.db.query.transfers.findMany()).filter(({ sponsor }) => sponsor !== null)
  expect(sponsored.filter(({ kind }) => kind === 'transfer')).toHaveLength(10)
  await expectOneTruth()
})

describe('the same request to both instances concurrently', () => {
  let employer: SignedInPayer
  beforeAll(async () => {
    employer = await fixture.employ()
  })

  /** Creates a locked batch with one payout to `address`. */
  async function prepare(session: string, address: string, name: string): Promise<BatchWithPayouts> {
    const { body: contractor } = await ask(balancer.url, session, '/contractors', { name, address })
    const { body: batch } = await ask(balancer.url, session, '/batches', { name })
    const instructions = [{ contractorId: contractor.id, encryptedAmount: 'sealed' }]
    await ask(balancer.url, session, `/batches/${batch.id}/instructions`, { instructions })
    await ask(balancer.url, session, `/batches/${batch.id}/ready`, {})
    return (await ask<BatchWithPayouts>(balancer.url, session, `/batches/${batch.id}`)).body
  }

  test('accepts a challenge once, and accepts each instance’s sessions at both', async () => {
    for (let round = 0; round < 5; round += 1) {
      const path = `/auth/sep10/challenge?account=${employer.address}`
      const { body } = await ask<{ transaction: string; network_passphrase: string }>(balancer.url, undefined, path)
      const challenge = new Transaction(body.transaction, body.network_passphrase)
      challenge.sign(employer.signer)
      const answers = await atOnce(undefined, '/auth/sep10/verify', { transaction: challenge.toXdr() })
      expect(statuses(answers)).toEqual([200, 400])
      const session = String(answers[0]?.body.session)
      expect(statuses(await atOnce(session, '/me'))).toEqual([200, 200])
    }
  })

  test('creates a contractor once, and accepts its invite once', async () => {
    const payee = await fixture.client()
    const answers = await atOnce(employer.session, '/contractors', { name: 'Ada', address: payee.address })
    expect(statuses(answers)).toEqual([200, 409])
    const { body } = await ask(balancer.url, employer.session, `/contractors/${answers[0]?.body.id}/invite`, {})
    const token = String(body.inviteUrl).split('/').at(-1)
    expect(statuses(await atOnce(payee.session, `/invites/${token}/accept`, {}))).toEqual([200, 409])
  })

  test('founds an organisation once', async () => {
    const newcomer = await fixture.client()
    expect(statuses(await atOnce(newcomer.session, '/batches', { name: 'the first' }))).toEqual([200, 200])
    const { rows } = (await fixture.db.execute(
      sql`SELECT FROM audit_log WHERE actor_sub = ${newcomer.address} AND action = 'organisation.founded'`,
    )) as unknown as { rows: unknown[] }
    expect(rows).toHaveLength(1)
  })

  test('instructs a contractor once, and locks the batch once', async () => {
    const contractor = (await fixture.payee()).signer.publicKey()
    const { body: ada } = await ask(balancer.url, employer.session, '/contractors', { name: 'B', address: contractor })
    const { body: batch } = await ask(balancer.url, employer.session, '/batches', { name: 'b' })
    const instructions = [{ contractorId: ada.id, encryptedAmount: 'sealed' }]
    type Instructed = { payouts: unknown[]; errors: unknown[] }
    const answers = await atOnce<Instructed>(employer.session, `/batches/${batch.id}/instructions`, { instructions })
    expect(statuses(answers)).toEqual([200, 200])
    expect(answers.map(({ body }) => body.errors.length).sort()).toEqual([0, 1])
    expect(statuses(await atOnce(employer.session, `/batches/${batch.id}/ready`, {}))).toEqual([200, 200])
    expect((await ask(instances[0] ?? '', employer.session, `/batches/${batch.id}`)).body).toMatchObject({
      status: 'ready',
      payoutCount: 1,
    })
  })

  test('pays for each transfer of five employers once, and responds identically at both instances', async () => {
    // Sequentially, because the issuer signs a deposit for each.
    const people: SignedInPayer[] = []
    for (let index = 0; index < 5; index += 1) people.push(await fixture.employ())
    const payee = (await fixture.payee()).signer.publicKey()
    const outcomes = people.map(async (person, index) => {
      const batch = await prepare(person.session, payee, `payroll ${index}`)
      const transfer = { to: payee, amount: 7n, opening: person.opening }
      const { signedXdr, hash } = await buildTransfer(fixture.ledger.network, person, transfer)
      const answers = await atOnce(person.session, '/transfer', { signedXDR: signedXdr })
      expect(statuses(answers)).toEqual([200, 200])
      expect(answers[0]?.body).toEqual(answers[1]?.body)
      await expectSponsoredOnce(fixture, person, hash)
      const responses = await atOnce<BatchWithPayouts>(person.session, `/batches/${batch.id}`)
      for (const { body } of responses) {
        expect(body).toMatchObject({
          status: 'completed',
          payouts: [{ status: 'paid', txHash: answers[0]?.body.hash }],
        })
      }
    })
    await Promise.all(outcomes)
    await expectOneTruth()
  })

  test('pays one of two transfers if the quota allows one', async () => {
    const person = await fixture.employ()
    const used = QUOTA - 1
    await chargeQuota(fixture.db, person.address, used)
    const payees = await Promise.all(instances.map(() => fixture.payee()))
    const answers = await Promise.all(
      payees.map(async ({ signer }, index) => {
        const transfer = { to: signer.publicKey(), amount: 7n, opening: person.opening }
        const { signedXdr } = await buildTransfer(fixture.ledger.network, person, transfer)
        return await ask(instances[index] ?? '', person.session, '/transfer', { signedXDR: signedXdr })
      }),
    )
    expect(statuses(answers).sort()).toEqual([200, 422])
    expect(await quotaOf(fixture, person.address)).toMatchObject({ count: QUOTA, held: 0n })
    await fixture.db.execute(sql`UPDATE quotas SET count = count - ${used} WHERE account = ${person.address}`)
    await expectOneTruth()
  })

  test('grants from the faucet once', async () => {
    const person = await fixture.employ(0n)
    const answers = await atOnce(person.session, '/funding/faucet', {})
    expect(statuses(answers)).toEqual([200, 429])
    expect(await fixture.received(person)).toBe(1_000_0000000n)
  })

  test('starts a batch job once, and reports the same at both instances', async () => {
    const { client, payee } = await fixture.engaged()
    const answers = await atOnce(client.session, '/batch', { amounts: [1, 2, 4] })
    expect(statuses(answers)).toEqual([200, 409])
    const path = `/batch/${answers[0]?.body.jobId}`
    await expect.poll(async () => (await ask(balancer.url, client.session, path)).body.status).toBe('completed')
    const states = await atOnce(client.session, path)
    expect(states[0]).toEqual(states[1])
    await expectJobPaidOnce(fixture, client, String(answers[0]?.body.jobId), [payee, 7n])
    await expectOneTruth()
  })
})

test('finishes a transfer that the other instance accepted before it was killed', async () => {
  const [first = '', second = ''] = instances
  const person = await fixture.employ()
  const payee = (await fixture.payee()).signer.publicKey()
  const { signedXdr, hash } = await buildTransfer(fixture.ledger.network, person, {
    to: payee,
    amount: 7n,
    opening: person.opening,
  })
  const reached = Promise.withResolvers<void>()
  fixture.ledger.proxy.rule((call) => {
    if (call.method !== 'sendTransaction') return 'pass'
    reached.resolve()
    return { hang: true, delivered: true }
  })
  const cut = ask(first, person.session, '/transfer', { signedXDR: signedXdr }).catch(() => 'cut')
  await reached.promise
  await programs[0]?.kill()
  expect(await cut).toBe('cut')
  fixture.ledger.proxy.rule(null)
  const answer = await ask(second, person.session, '/transfer', { signedXDR: signedXdr })
  expect(answer).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
  await expectSponsoredOnce(fixture, person, hash)
  await expectOneTruth()
})
