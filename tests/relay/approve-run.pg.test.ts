import { Keypair } from '@stellar/stellar-sdk'
import { beforeAll, describe, expect, test } from 'vitest'
import { publicHalf } from '#lib/config/relay-key.ts'
import { openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import { parseEvidence, type RunEvidence, verifyRun } from '#lib/disclosure/run-evidence.ts'
import { type ApprovalRequest, type ApprovedPayee, approveRun } from '#lib/sdk/approve-run.ts'
import { handOver, type OpenedSeal, readHandedOver } from '#lib/sdk/hand-over.ts'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import { writeEvidence } from '#lib/sdk/run-evidence.ts'
import { approvalKey, nameApprovalKey, openApprovalKey } from '#lib/wallet/approval-key.ts'
import { signManifest } from '#lib/wallet/manifest.ts'
import { sealOwnPayout } from '#lib/wallet/seal-key.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { openApi } from '../support/api.ts'
import { shareAccount } from '../support/multisig.ts'
import { runs, serveRuns, service } from './run-fixture.ts'
import { SHORT_TIMES } from './short-times.ts'

serveRuns()

let api: (request: Request) => Promise<Response>
beforeAll(async () => {
  api = await openApi()
})

const AMOUNTS = [10n, 20n]

/** How many signatures clients have sent. */
let signaturesSent = 0

/** A client of the service, through `change`. */
const clientOf = (
  session: string,
  change: (response: Response, request: Request) => Response | Promise<Response> = (same) => same,
) =>
  createPayrollClient({
    baseUrl: 'http://localhost:3000/api',
    session,
    fetch: async (request) => {
      if (request.method === 'POST' && request.url.endsWith('/run')) signaturesSent += 1
      return await change(await api(request), request)
    },
  })

/** The key that a signer gives to the preparer. */
const publicKeyOf = async (signer: Keypair) => {
  const named = JSON.stringify(await nameApprovalKey(keypairSigner(signer)))
  return openApprovalKey(named, [{ key: signer.publicKey() }])
}

/** A batch that one of three signers has sealed and signed, and what it hands over to the second. */
async function prepare() {
  const { batch, employer } = await runs.delegated(AMOUNTS)
  const [second, third] = [Keypair.random(), Keypair.random()]
  await shareAccount(runs.network, employer, [second, third], 3)
  const relayKey = publicHalf(service.key)
  const seals = await Promise.all(
    batch.payouts.map(async ({ id: payoutId, contractorId: contractor }, index) => {
      const binding = { batch: batch.id, contractor, spender: runs.channel }
      return { payoutId, encryptedAmount: await sealOwnPayout(employer, relayKey, binding, AMOUNTS[index] ?? 0n) }
    }),
  )
  await runs.ask(employer, 'POST', `/batches/${batch.id}/seals`, { seals })
  const { payouts } = await runs.read(batch)
  const given = { keys: employer.keys, batch: batch.id, relayKey }
  /** What the preparer gives to a signer, as that signer reads it. */
  const handedTo = async (signer: Keypair): Promise<OpenedSeal[]> => {
    const key = await approvalKey(keypairSigner(signer))
    return await readHandedOver(key, batch.id, await handOver(given, payouts, await publicKeyOf(signer)))
  }
  const payees: ApprovedPayee[] = batch.payees.map(({ address }, index) => ({ address, amount: AMOUNTS[index] ?? 0n }))
  const sessionOf = (signer: Keypair) => service.wallet(signer.publicKey())
  const requestOf = async (signer: Keypair, changes: Partial<ApprovalRequest> = {}): Promise<ApprovalRequest> => ({
    client: clientOf(await sessionOf(signer)),
    deployment: runs.network,
    signer,
    batch: batch.id,
    account: employer.address,
    payees,
    seals: await handedTo(signer),
    relay: { publicKey: relayKey, channels: service.channels.map((channel) => channel.publicKey()) },
    ...changes,
  })
  // The first signature comes from the employer.
  const manifest = await runs.manifestOf(batch)
  const signature = await signManifest(keypairSigner(employer.signer), manifest)
  await runs.ask(employer, 'POST', `/batches/${batch.id}/run`, { signature })
  return { batch, employer, second, third, payees, payouts, requestOf, handedTo, sessionOf, given }
}

test('approves the run of the list, which is then paid, and leaves evidence', async () => {
  const { batch, employer, second, third, requestOf } = await prepare()
  expect(await approveRun(await requestOf(second))).toEqual({ started: false, weight: 2, needed: 3, errors: [] })
  expect(await approveRun(await requestOf(third))).toMatchObject({ started: true })
  expect(signaturesSent).toBe(2)
  {
    await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
    await runs.ended(batch)
  }
  expect(await runs.received(batch)).toEqual(AMOUNTS)

  const client = clientOf(employer.session)
  const evidence = await writeEvidence({ client, deployment: runs.network, batch: batch.id })
  const source = openLedgerSource(runs.network.rpc, runs.network.token)
  const check = (changes: Partial<RunEvidence> = {}) =>
    verifyRun(source, parseEvidence(JSON.stringify({ ...evidence, ...changes })))
  const signers = [employer.signer, second, third].map((signer) => ({ key: signer.publicKey(), weight: 1 }))
  expect(await check()).toMatchObject({
    ...{ signed: expect.arrayContaining(signers), needed: 3 },
    payments: batch.payouts.map(({ id, address }) => ({ payout: id, to: address })),
  })
  const [one, other] = evidence.payments
  if (!one || !other) throw new Error('two payments were made')
  const swapped = [
    { payout: one.payout, transaction: other.transaction },
    { payout: other.payout, transaction: one.transaction },
  ]
  await expect(check({ payments: swapped })).rejects.toMatchObject({ code: 'payment-differs' })
  await expect(check({ payments: [one, one] })).rejects.toMatchObject({ code: 'payment-differs' })
  await expect(check({ payments: [{ ...one, transaction: 'ab'.repeat(32) }] })).rejects.toMatchObject({
    code: 'event-not-found',
  })
  const half = evidence.signatures.slice(0, 2)
  await expect(check({ signatures: half })).rejects.toMatchObject({ code: 'signatures-too-few' })
  const manifest = evidence.manifest.replace(batch.first.contractorId, crypto.randomUUID())
  await expect(check({ manifest })).rejects.toMatchObject({ code: 'signatures-too-few' })
  const [signer = { key: '', weight: 1 }] = evidence.account.signers
  expect(() =>
    parseEvidence(JSON.stringify({ ...evidence, account: { ...evidence.account, signers: [signer, signer] } })),
  ).toThrow(expect.objectContaining({ code: 'evidence-invalid' }))
  await expect(check({ manifest: 'x' })).rejects.toMatchObject({ code: 'evidence-invalid' })
  expect(() => parseEvidence('{')).toThrow(expect.objectContaining({ code: 'evidence-invalid' }))
})

describe('an approver signs nothing', () => {
  let prepared: Awaited<ReturnType<typeof prepare>>
  beforeAll(async () => {
    prepared = await prepare()
  })

  /** Tries to approve, and requires that no signature was sent. */
  async function refused(changes: Partial<ApprovalRequest>) {
    const { second, requestOf } = prepared
    signaturesSent = 0
    const request = await requestOf(second, changes)
    const error = await approveRun(request).catch((cause: unknown) => cause)
    expect(signaturesSent).toBe(0)
    return error
  }

  const LISTS: Record<string, (payees: ApprovedPayee[]) => ApprovedPayee[]> = {
    'another amount': ([first, ...others]) => [{ ...(first as ApprovedPayee), amount: 11n }, ...others],
    'another payee': ([first, ...others]) => [
      { ...(first as ApprovedPayee), address: Keypair.random().publicKey() },
      ...others,
    ],
    'another contractor': ([first, ...others]) => [
      { ...(first as ApprovedPayee), contractor: crypto.randomUUID() },
      ...others,
    ],
    'one payee more': (payees) => [...payees, { address: Keypair.random().publicKey(), amount: 1n }],
    'one payee fewer': (payees) => payees.slice(1),
    'a payee twice': ([first, ...others]) => [first as ApprovedPayee, first as ApprovedPayee, ...others.slice(1)],
  }
  test.each(Object.keys(LISTS))('if its list has %s', async (name) => {
    expect(await refused({ payees: LISTS[name]?.(prepared.payees) ?? [] })).toMatchObject({ code: 'list-differs' })
  })

  const SEALS: Record<string, (seals: OpenedSeal[]) => OpenedSeal[]> = {
    'lacks an amount': (seals) => seals.slice(1),
    'has the secret of another seal': ([one, other]) => [
      { ...(one as OpenedSeal), secret: other?.secret ?? '' },
      other as OpenedSeal,
    ],
    'has another seal': ([one, other]) => [
      { ...(one as OpenedSeal), encryptedAmount: other?.encryptedAmount ?? '' },
      other as OpenedSeal,
    ],
    'has no secret': ([one, other]) => [{ ...(one as OpenedSeal), secret: '' }, other as OpenedSeal],
  }
  test.each(Object.keys(SEALS))('if what was handed over %s', async (name) => {
    const seals = SEALS[name]?.(await prepared.handedTo(prepared.second)) ?? []
    expect(await refused({ seals })).toMatchObject({ code: 'list-differs' })
  })

  const LIES: Record<string, (manifest: string) => string> = {
    'another payee': (text) => text.replace(prepared.payees[0]?.address ?? '', Keypair.random().publicKey()),
    'another account': (text) => text.replace(prepared.employer.address, Keypair.random().publicKey()),
    'another batch': (text) => text.replace(prepared.batch.id, crypto.randomUUID()),
    'another network': (text) => text.replace(runs.network.passphrase, 'Another network'),
    'a longer delegation': (text) =>
      text.replace(/^(delegation \S+ )(\d+)$/m, (_, start, ledger) => `${start}${Number(ledger) + 1}`),
    'no payout': (text) => text.replace(/^payout .*\n/gm, ''),
    'nothing that can be read': () => 'a manifest',
  }
  test.each(Object.keys(LIES))('if the service shows a manifest with %s', async (name) => {
    const lie = async (response: Response, request: Request) => {
      if (!request.url.includes('/approval')) return response
      const body = await response.json()
      return Response.json({ ...body, manifest: LIES[name]?.(body.manifest) })
    }
    const client = clientOf(await prepared.sessionOf(prepared.second), lie)
    expect(await refused({ client })).toMatchObject({ code: 'list-differs' })
  })

  test('for a channel or key of the relay that it does not trust, and as a stranger', async () => {
    const channels = [Keypair.random().publicKey()]
    const { given, employer } = prepared
    expect(await refused({ relay: { publicKey: given.relayKey, channels } })).toMatchObject({ code: 'relay-unknown' })
    expect(await refused({ relay: undefined })).toMatchObject({ code: 'relay-unknown' })
    const stranger = Keypair.random()
    const client = clientOf(employer.session)
    expect(await refused({ signer: stranger, client })).toMatchObject({ code: 'not-started' })
    expect(await refused({ account: stranger.publicKey() })).toMatchObject({ code: 'batch-not-found' })
  })
})

test('encrypts amounts to the key of a signer only, even if it was replaced on the way', async () => {
  const [signer, other] = [Keypair.random(), Keypair.random()]
  const named = await nameApprovalKey(keypairSigner(signer))
  const theirs = await nameApprovalKey(keypairSigner(other))
  const signers = [{ key: signer.publicKey() }]
  for (const wrong of [theirs, { ...named, key: theirs.key }, { ...theirs, signer: named.signer }, {}])
    expect(() => openApprovalKey(JSON.stringify(wrong), signers)).toThrow(
      expect.objectContaining({ code: 'signature-invalid' }),
    )
})

test('hands over the account’s own seals, to one signer and for one batch', async () => {
  const { given, payouts, second, third, batch } = await prepare()
  const [own, other] = [await approvalKey(keypairSigner(second)), await approvalKey(keypairSigner(third))]
  const text = await handOver(given, payouts, await publicKeyOf(second))
  expect(await readHandedOver(own, batch.id, `${text}\n`)).toHaveLength(2)
  await expect(readHandedOver(other, batch.id, text)).rejects.toMatchObject({ code: 'list-differs' })
  await expect(readHandedOver(own, crypto.randomUUID(), text)).rejects.toMatchObject({ code: 'list-differs' })
  const foreign = await runs.batchOf(batch.employer, [1n])
  await expect(
    handOver({ ...given, batch: foreign.id }, foreign.payouts, await publicKeyOf(second)),
  ).rejects.toMatchObject({
    code: 'not-started',
  })
})
