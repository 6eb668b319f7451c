import { Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { payouts as payoutRows } from '#drizzle/schema/directory.ts'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { generateRelayKey } from '#lib/config/relay-key.ts'
import { STAND_IN_KEYS, prover as standIn } from '#lib/prover/stand-in.ts'
import { hashSeal, type Manifest } from '#lib/wallet/manifest.ts'
import { CIRCUIT_TYPES } from '#lib/wallet/statement.ts'
import { captureLog } from '../support/console.ts'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { expectRunPaidOnce, quotaOf } from '../support/paid-once.ts'
import { chargeQuota } from '../transfers/quota-ledger.ts'
import { type RunBatch, runs, serveRuns, service } from './run-fixture.ts'

serveRuns({ areAnnounced: false })

const refused = (status: number, code: string) => ({ status, body: { code } })

test('pays every payout of a batch once, from the employer’s delegation', async () => {
  await using _relay = await service.relay()
  const employer = await runs.employer()
  const before = await runs.spendable(employer)
  const batch = await runs.batchOf(employer, [1n, 2n, 4n])
  await runs.delegate(employer, 10n)
  expect(await runs.run(batch)).toMatchObject({ status: 200, body: { settledCount: 0, payoutCount: 3 } })
  const ended = await expectRunPaidOnce(runs, batch, [1n, 2n, 4n])
  expect(ended.payouts.map(({ encryptedAmount }) => encryptedAmount)).toEqual([undefined, undefined, undefined])
  expect(await runs.linesOf(batch)).toMatchObject(
    ended.payouts.map(({ txHash }) => ({ outcome: 'paid', hash: txHash })),
  )
  await runs.revoke(employer)
  expect(await runs.spendable(employer)).toBe(before - 7n)
})

describe('starts a run', () => {
  test('once, however often it is requested', async () => {
    const { employer, batch } = await runs.delegated([1n, 2n])
    const answers = await Promise.all([runs.run(batch), runs.run(batch)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await runs.run(batch)).toMatchObject({ status: 200 })
    expect(await runs.jobsOf(batch)).toHaveLength(1)
    expect(await runs.linesOf(batch)).toHaveLength(2)
    expect(await quotaOf(service, employer.address)).toMatchObject({ count: 2 })
    await using _relay = await service.relay()
    await expectRunPaidOnce(runs, batch, [1n, 2n])
    expect(await runs.run(batch)).toMatchObject({ status: 200, body: { status: 'completed', settledCount: 2 } })
    expect(await runs.jobsOf(batch)).toHaveLength(1)
    expect(await quotaOf(service, employer.address)).toMatchObject({ count: 2, held: 0n })
  })

  test('not from a draft, and not for a user without a wallet', async () => {
    const employer = await runs.employer()
    const { body: draft } = await runs.ask<{ id: string }>(employer, 'POST', '/batches', { name: 'a draft' })
    const signature = Buffer.alloc(64).toString('base64')
    const path = `/batches/${draft.id}/run`
    expect(await runs.ask(employer, 'POST', path, { signature })).toMatchObject(refused(409, 'run-not-ready'))
    const session = await service.user('somebody')
    expect(await runs.ask({ session }, 'POST', path, { signature })).toMatchObject(refused(404, 'batch-not-found'))
    const { body: own } = await runs.ask<{ id: string }>({ session }, 'POST', '/batches', { name: 'its own' })
    const ownPath = `/batches/${own.id}/run`
    expect(await runs.ask({ session }, 'POST', ownPath, { signature })).toMatchObject(refused(501, 'wallet-required'))
    for (const [given, code] of [
      [{}, 'signature-required'],
      [{ signature: 'AAAA' }, 'signature-invalid'],
    ] as const) {
      expect(await runs.ask(employer, 'POST', path, given)).toMatchObject({ status: 400, body: { code } })
    }
  })

  test.each<[string, (batch: RunBatch) => Promise<unknown>]>([
    ['seal-malformed', (batch) => replaceSeals(batch, async () => 'a note')],
    ['seal-key', (batch) => reseal(batch, { key: generateRelayKey() })],
    ['seal-elsewhere', (batch) => reseal(batch, { batch: NOWHERE })],
    ['seal-elsewhere', (batch) => reseal(batch, { contractor: NOWHERE })],
    ['channel-unknown', (batch) => reseal(batch, { spender: Keypair.random().publicKey() })],
    ['delegation-missing', (batch) => reseal(batch, { spender: service.addressOf(1) })],
    [
      'delegation-too-short',
      async ({ employer }) => {
        await runs.revoke(employer)
        await runs.delegate(employer, 9n, undefined, 20)
      },
    ],
    ['channel-unavailable', () => service.db.update(relayChannels).set({ paused: true })],
    [
      'no-address',
      ({ payouts: [first] }) =>
        service.db
          .update(payoutRows)
          .set({ address: null })
          .where(eq(payoutRows.id, first?.id ?? '')),
    ],
    ['quota-transfers', ({ employer: { address } }) => chargeQuota(service.db, address, 499)],
  ])('not if the reason is %s, and leaves nothing behind', (reason, spoil) => expectUnready(reason, spoil))

  test.each<[string, (batch: RunBatch) => Partial<Manifest>]>([
    [
      'another payee',
      ({ payouts }) => ({
        payouts: payouts.map(({ id: payout, contractorId: contractor, address = '', encryptedAmount = '' }) => {
          const sealHash = hashSeal(encryptedAmount)
          return { payout, contractor, address: address.replace(/.$/, 'A'), channel: service.addressOf(0), sealHash }
        }),
      }),
    ],
    ['another delegation', () => ({ delegations: [{ channel: service.addressOf(0), liveUntilLedger: 1 }] })],
  ])('not if the signed manifest has %s', (_, changes) => expectUnready('manifest', async () => undefined, changes))

  async function expectUnready(
    reason: string,
    spoil: (batch: RunBatch) => Promise<unknown>,
    changes: (batch: RunBatch) => Partial<Manifest> = () => ({}),
  ) {
    const { employer, batch } = await runs.delegated([1n, 2n])
    await spoil(batch)
    const answer = await runs.run<{ code: string; errors: { reason: string }[] }>(batch, changes(batch))
    await service.db.update(relayChannels).set({ paused: false })
    expect(answer).toMatchObject({ status: 409, body: { code: 'run-not-ready' } })
    expect(answer.body.errors.map((error) => error.reason)).toContain(reason)
    expect(await runs.jobsOf(batch)).toEqual([])
    const used = await quotaOf(service, employer.address)
    expect(used?.count ?? 0).toBe(reason === 'quota-transfers' ? 499 : 0)
  }

  test('not if a seal is replaced after the signature was checked', async () => {
    const { employer, batch } = await runs.delegated([1n])
    let replaced = 0
    service.ledger.proxy.rule(async ({ method, params }): Promise<Fault> => {
      // The account's signers are the last that the service reads.
      const isAccount =
        method === 'getLedgerEntries' && /^AAAAA/.test(String((params.keys as string[] | undefined)?.[0]))
      if (isAccount && replaced++ === 0) await reseal(batch, {})
      return 'pass'
    })
    const answer = await runs.run(batch)
    expect([replaced, answer]).toMatchObject([1, { status: 409, body: { errors: [{ reason: 'manifest' }] } }])
    expect(await runs.jobsOf(batch)).toEqual([])
    expect((await quotaOf(service, employer.address))?.count ?? 0).toBe(0)
  })

  test('not on a channel that an unfinished run of the account names', async () => {
    const employer = await runs.employer()
    const [first, second] = [await runs.batchOf(employer, [1n]), await runs.batchOf(employer, [2n])]
    await runs.delegate(employer, 3n)
    expect(await runs.run(first)).toMatchObject({ status: 200 })
    expect(await runs.run(second)).toMatchObject({ status: 409, body: { errors: [{ reason: 'channel-busy' }] } })
    await using _relay = await service.relay()
    await runs.ended(first)
    expect(await runs.run(second)).toMatchObject({ status: 200 })
    await runs.ended(second)
    expect([await runs.received(first), await runs.received(second)]).toEqual([[1n], [2n]])
  })

  test('and keeps its batch and its seals until it has ended', async () => {
    const { employer, batch } = await runs.begin([1n])
    const seals = [{ payoutId: batch.payouts[0]?.id, encryptedAmount: 'a note' }]
    expect(await runs.ask(employer, 'POST', `/batches/${batch.id}/seals`, { seals })).toMatchObject(
      refused(409, 'run-unfinished'),
    )
    expect(await runs.ask(employer, 'DELETE', `/batches/${batch.id}`)).toMatchObject(refused(409, 'batch-run'))
    await using _relay = await service.relay()
    await runs.ended(batch)
  })
})

/** The circuit type whose key a simulated call reads from the network's verifier. */
function readKeyType({ method, params }: Call): number | undefined {
  if (method !== 'simulateTransaction') return undefined
  const [operation] = TransactionBuilder.fromXdr(String(params.transaction), runs.network.passphrase).operations
  if (operation?.type !== 'invokeHostFunction' || operation.func.type !== 'hostFunctionTypeInvokeContract') return
  const { functionName, args } = operation.func.invokeContract
  const [type] = args
  return functionName.toString() === 'get_verification_key' && type?.type === 'scvU32' ? type.u32 : undefined
}

const { register, withdraw, transfer } = STAND_IN_KEYS

test.each([
  {
    what: 'circuits for the first three operations only',
    verificationKeys: { register, withdraw, transfer },
    verifierKeys: STAND_IN_KEYS,
    why: /^the prover has no circuit \w+$/,
  },
  {
    what: 'a verifier that has only their keys',
    verificationKeys: STAND_IN_KEYS,
    verifierKeys: { register, withdraw, transfer },
    why: /^the network's verifier has another key, or none, for the circuit \w+$/,
  },
])('serves no runs with $what, and says why', async ({ verificationKeys, verifierKeys, why }) => {
  const lines = captureLog()
  onTestFinished(() => void vi.restoreAllMocks())
  const types: number[] = Object.keys(verifierKeys).map(
    (circuit) => CIRCUIT_TYPES[circuit as keyof typeof CIRCUIT_TYPES],
  )
  service.ledger.proxy.rule((call): Fault => {
    const type = readKeyType(call)
    if (type === undefined || types.includes(type)) return 'pass'
    return { answer: { latestLedger: 1, error: 'HostError: Error(Contract, #3401)' } }
  })
  // What an earlier relay has announced.
  await service.db.update(relayChannels).set({ runs: true, runProblem: null })
  await using relay = await service.relay({ prover: { ...standIn, verificationKeys } })
  const employer = await runs.employer()
  await expect.poll(() => runs.ask(employer, 'GET', '/relay')).toMatchObject({ body: { code: 'runs-not-wired' } })
  const logged = lines.find((line) => line.includes('relay serves no runs')) ?? '{}'
  expect(JSON.parse(logged).problem).toMatch(why)
  const problem = expect.stringMatching(new RegExp(why.source.replace('^', '^no runs: ')))
  const readHealth = async () => await (await fetch(`${relay.url}/health`)).json()
  await expect.poll(readHealth).toMatchObject({ ok: true, runs: false, problems: [problem] })
  const ready = () => runs.ask(employer, 'GET', '/ready')
  await expect.poll(ready).toMatchObject({ body: { relay: { ok: true, runs: false, problem } } })
  const batch = await runs.batchOf(employer, [1n])
  const signature = Buffer.alloc(64).toString('base64')
  expect(await runs.ask(employer, 'POST', `/batches/${batch.id}/run`, { signature })).toMatchObject(
    refused(501, 'runs-not-wired'),
  )
  // A job needs none of the other circuits.
  const { client } = await service.engaged()
  expect(await service.ended(client, await service.begin(client, 1))).toMatchObject({ status: 'completed' })
})

const NOWHERE = '00000000-0000-4000-8000-000000000000'

/** Replaces the seals of a batch by others. */
const reseal = (
  batch: RunBatch,
  changed: { batch?: string; contractor?: string; spender?: string; key?: ReturnType<typeof generateRelayKey> },
) =>
  replaceSeals(batch, (contractorId) =>
    runs.seal(changed.batch ?? batch.id, changed.contractor ?? contractorId, 1n, changed.spender, changed.key),
  )

async function replaceSeals({ id, employer, payouts }: RunBatch, seal: (contractor: string) => Promise<string>) {
  const seals = await Promise.all(
    payouts.map(async ({ id: payoutId, contractorId }) => ({ payoutId, encryptedAmount: await seal(contractorId) })),
  )
  expect((await runs.ask(employer, 'POST', `/batches/${id}/seals`, { seals })).status).toBe(200)
}
