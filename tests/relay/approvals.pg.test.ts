import { Keypair, Networks } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { runApprovals } from '#drizzle/schema/approvals.ts'
import { auditLog } from '#drizzle/schema/audit.ts'
import { payouts as payoutRows } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { quotas } from '#drizzle/schema/transfers.ts'
import { publishEvents } from '#lib/events/publish.ts'
import type { Approval, ApprovalView } from '#lib/relay/approval.ts'
import { readQuotaDay } from '#lib/transfers/quota.ts'
import {
  formatManifest,
  formatSignatures,
  type Manifest,
  parseManifest,
  parseSignatures,
  signManifest,
} from '#lib/wallet/manifest.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { setOptions, shareAccount } from '../support/multisig.ts'
import { type RunBatch, runs, serveRuns, service } from './run-fixture.ts'
import { SHORT_TIMES } from './short-times.ts'

serveRuns()

type Progress = { status: string; run?: { status: string }; approval?: Approval; errors?: unknown[]; code?: string }

/** A batch whose escrow is in place, of an account with three signers of weight 1, two of which must sign. */
async function shared(amounts: readonly bigint[] = [1n, 2n]) {
  const { batch, employer } = await runs.delegated(amounts)
  const [second, third] = [Keypair.random(), Keypair.random()]
  await shareAccount(runs.network, employer, [second, third], 2)
  const manifest = await runs.manifestOf(batch)
  const sessionOf = (signer: Keypair) => service.wallet(signer.publicKey())
  /** Posts the signature of `by` in a session of its own, or of the employer. */
  const post = async (by: Keypair, { over = manifest, session = '' }: { over?: Manifest; session?: string } = {}) => {
    const signature = await signManifest(keypairSigner(by), over)
    // The account's own key is the employer's.
    const own = by.publicKey() === employer.address ? employer.session : await sessionOf(by)
    const caller = { session: session === '' ? own : session }
    return await runs.ask<Progress>(caller, 'POST', `/batches/${batch.id}/run`, { signature })
  }
  const view = async (session: string) =>
    await runs.ask<ApprovalView & { code?: string }>({ session }, 'GET', `/batches/${batch.id}/approval`)
  const kept = async () => (await service.db.select().from(runApprovals).where(eq(runApprovals.batch, batch.id)))[0]
  return { batch, employer, first: employer.signer, second, third, manifest, post, view, kept, sessionOf }
}

/** Runs a relay until the run has ended; resolves to what was received, and to why lines have failed. */
async function outcomeOf(batch: RunBatch) {
  await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
  await runs.ended(batch)
  const lines = await runs.linesOf(batch)
  return { received: await runs.received(batch), lines: lines.map(({ state, error }) => error ?? state) }
}

test('starts a run with the signature that reaches the threshold, and pays it', async () => {
  const { batch, employer, first, second, third, manifest, post, view, kept, sessionOf } = await shared()
  const text = formatManifest(manifest)
  expect((await view(employer.session)).body).toMatchObject({ status: 'waiting', weight: 0, needed: 2, manifest: text })
  const begun = await post(first)
  const approval = { weight: 1, needed: 2, signers: [first.publicKey()], manifest: text }
  expect(begun).toEqual({ status: 200, body: expect.objectContaining({ status: 'ready', approval }) })
  expect(await runs.jobsOf(batch)).toEqual([])
  const { body } = await view(await sessionOf(second))
  expect(body.signers).toEqual(
    expect.arrayContaining([
      { signer: first.publicKey(), weight: 1, signed: true },
      { signer: second.publicKey(), weight: 1, signed: false },
      { signer: third.publicKey(), weight: 1, signed: false },
    ]),
  )
  const payees = batch.payouts.map(({ id, contractorId, address }) => ({ payoutId: id, contractorId, address }))
  expect(body).toMatchObject({ account: employer.address, count: 2, weight: 1 })
  expect(body.payees).toEqual(expect.arrayContaining(payees.map((payee) => ({ ...payee, name: expect.any(String) }))))
  const ended = await post(second)
  expect(ended).toMatchObject({ status: 200, body: { run: { status: 'running' } } })
  expect(ended.body.approval).toBeUndefined()
  expect(await kept()).toBeUndefined()
  const [job] = await runs.jobsOf(batch)
  expect(parseSignatures(job?.signature ?? '')).toHaveLength(2)
  expect(await outcomeOf(batch)).toEqual({ received: [1n, 2n], lines: ['paid', 'paid'] })
  // What was signed stays readable for the signers.
  expect((await view(await sessionOf(third))).body).toMatchObject({ status: 'completed', manifest: text, weight: 2 })
  while ((await publishEvents(service.db)) > 0);
  const { body: listed } = await runs.ask<{ events: { type: string; data: object }[] }>(
    employer,
    'GET',
    '/events?type=run.approval_added,run.started',
  )
  expect(
    listed.events.filter(({ data }) => 'batchId' in data && data.batchId === batch.id).map(({ type }) => type),
  ).toEqual(['run.approval_added', 'run.approval_added', 'run.started'])
})

test('starts one run if two signers send the last signature at the same time', async () => {
  const { batch, first, second, third, post } = await shared()
  await post(first)
  const both = await Promise.all([post(second), post(third)])
  expect(both.map(({ status }) => status)).toEqual([200, 200])
  expect(await runs.jobsOf(batch)).toHaveLength(1)
})

test('lets the wallet of a signer see the approval and sign, and nothing else', async () => {
  const { batch, employer, first, second, third, post, view, sessionOf } = await shared()
  const session = await sessionOf(second)
  // No account is known before the employer has sent the first signature.
  expect((await view(session)).status).toBe(404)
  expect((await post(second)).status).toBe(404)
  await post(first)
  const seen = await view(session)
  expect(seen.status).toBe(200)
  expect(JSON.stringify(seen.body)).not.toContain('"signature"')
  expect((await view(employer.session)).body.signers.filter(({ signature }) => signature)).toHaveLength(1)
  for (const [method, path] of [
    ['GET', `/batches/${batch.id}`],
    ['GET', `/batches/${batch.id}/status`],
    ['DELETE', `/payouts/${batch.first.id}`],
  ] as const) {
    expect((await runs.ask({ session }, method, path)).status, path).toBe(404)
  }
  // A stranger, a payee, and a user of the identity provider learn nothing.
  const [stranger, payee] = [await sessionOf(Keypair.random()), await service.wallet(batch.payees[0]?.address ?? '')]
  for (const other of [stranger, payee, await service.user('idp|eve', 'eve@b.example')]) {
    expect(await view(other)).toMatchObject({ status: 404, body: { code: 'batch-not-found' } })
    expect(await post(first, { session: other })).toMatchObject({ status: 404, body: { code: 'batch-not-found' } })
  }
  // The signature decides: the employer may pass on the one of another signer.
  expect((await post(third, { session: employer.session })).body.run).toEqual({ status: 'running' })
})

test('takes signatures from the employer’s session with the identity provider', async () => {
  const { batch, employer, first, second, post, view } = await shared()
  const program = await service.user(`erp|${batch.id}`, 'erp@b.example')
  expect(await post(first, { session: program })).toMatchObject({ status: 404 })
  await service.ask('POST', '/me/identities', { session: employer.session, body: { session: program } })
  expect((await view(program)).body).toMatchObject({ account: employer.address, weight: 0 })
  await post(first, { session: program })
  // Its own signature is nothing.
  expect(await post(Keypair.random(), { session: program })).toMatchObject({ status: 409 })
  expect((await post(second, { session: program })).body.run).toEqual({ status: 'running' })
})

test('starts with one signature if that has enough weight, without an approval', async () => {
  const { batch, employer } = await runs.delegated([1n])
  const { status, body } = await runs.run<Progress>(batch)
  expect([status, body.run, body.approval]).toEqual([200, { status: 'running' }, undefined])
  const entries = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, batch.id))
  expect(entries.map(({ action }) => action)).not.toContain('batch.approved')
  expect((await runs.ask<ApprovalView>(employer, 'GET', `/batches/${batch.id}/approval`)).body).toMatchObject({
    ...{ status: 'running', weight: 1, needed: 1 },
  })
})

test('keeps the last signature if the run cannot start yet, and starts it later', async () => {
  const { batch, employer, first, second, post, kept } = await shared()
  await post(first)
  const day = await readQuotaDay(service.db)
  const full = { account: employer.address, day, count: 1_000_000 }
  const target = [quotas.account, quotas.day]
  await service.db
    .insert(quotas)
    .values(full)
    .onConflictDoUpdate({ target, set: { count: full.count } })
  const refused = await post(second)
  expect(refused).toMatchObject({
    status: 200,
    body: { approval: { weight: 2, errors: [{ reason: 'quota-transfers' }] } },
  })
  expect((await kept())?.signatures).toHaveLength(2)
  expect(await runs.jobsOf(batch)).toEqual([])
  await service.db.update(quotas).set({ count: 0 }).where(eq(quotas.account, employer.address))
  expect((await post(first)).body.run).toEqual({ status: 'running' })
})

test('shows the signers of another account of the organisation nothing', async () => {
  const { batch, employer, first, second, post, view, kept } = await shared()
  await post(first)
  // The employer joins another wallet, which has a signer, too.
  const other = await service.employ()
  const stranger = Keypair.random()
  await shareAccount(runs.network, other, [stranger], 1)
  await service.ask('POST', '/me/identities', { session: employer.session, body: { session: other.session } })
  const session = await service.wallet(stranger.publicKey())
  expect((await view(session)).status).toBe(404)
  expect((await post(stranger)).status).toBe(404)
  expect((await runs.ask({ session }, 'GET', `/batches/${batch.id}/approval?payer=${other.address}`)).status).toBe(404)
  expect((await kept())?.signers).toEqual([first.publicKey()])
  expect((await post(second)).body.run).toEqual({ status: 'running' })
  expect((await view(session)).status).toBe(404)
})

describe('no run starts', () => {
  test('with the signature of another batch or network, or of a stranger', async () => {
    const { batch, manifest, first, post } = await shared()
    const other = await runs.batchOf(batch.employer, [1n])
    for (const over of [
      { ...manifest, batch: other.id },
      { ...manifest, passphrase: Networks.PUBLIC },
      { ...manifest, account: Keypair.random().publicKey() },
    ]) {
      expect(await post(first, { over, session: batch.employer.session })).toMatchObject({
        ...{ status: 409, body: { code: 'run-not-ready', errors: [{ reason: 'manifest' }] } },
      })
    }
    const stranger = await post(Keypair.random(), { session: batch.employer.session })
    expect(stranger).toMatchObject({ status: 409, body: { errors: [{ reason: 'manifest' }] } })
  })

  test('with one signature that is sent again and again', async () => {
    const { batch, first, post, kept } = await shared()
    for (let attempt = 0; attempt < 3; attempt += 1) expect((await post(first)).body.approval?.weight).toBe(1)
    expect((await kept())?.signatures).toHaveLength(1)
    const entries = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, batch.id))
    expect(entries.filter(({ action }) => action === 'batch.approved')).toHaveLength(1)
  })

  test('with the signature of a signer who was removed in between', async () => {
    const { employer, first, second, third, post } = await shared()
    await post(second, { session: employer.session })
    const removed = { signer: { ed25519PublicKey: second.publicKey(), weight: 0 } }
    await setOptions(runs.network, employer.address, [first, third], removed)
    expect((await post(third)).body.approval).toMatchObject({ weight: 1, signers: [third.publicKey()] })
    expect((await post(first)).body.run).toEqual({ status: 'running' })
  })

  test('after the line that was signed is swapped in the database, and the response says why', async () => {
    const { batch, first, second, manifest, post, view, kept } = await shared()
    await post(first)
    const sealed = await runs.seal(batch.id, batch.first.contractorId, 9n)
    await service.db.update(payoutRows).set({ encryptedAmount: sealed }).where(eq(payoutRows.id, batch.first.id))
    // The second signer has signed what the first one has signed.
    const changed = { payoutId: batch.first.id, reason: 'seal-changed' }
    expect(await post(second)).toMatchObject({
      ...{ status: 409, body: { errors: [{ reason: 'manifest' }, changed] } },
    })
    expect((await view(batch.employer.session)).body).toMatchObject({ weight: 0, void: [changed] })
    // A signer who does not look signs the new one: the earlier signature does not count.
    const over = await runs.manifestOf(batch)
    expect((await post(second, { over })).body.approval).toMatchObject({ weight: 1, void: [changed] })
    expect(await runs.jobsOf(batch)).toEqual([])
    expect((await kept())?.manifest).not.toBe(formatManifest(manifest))
    const entries = await service.db.select().from(auditLog).where(eq(auditLog.subjectId, batch.id))
    const voided = entries.find(({ action }) => action === 'batch.approval-void')
    expect(voided?.detail).toEqual({ changes: ['seal-changed'] })
  })

  test('with signatures that are written into the database', async () => {
    const { batch, first, second, post } = await shared()
    await post(first)
    const one = await signManifest(keypairSigner(first), await runs.manifestOf(batch))
    const forged = { signatures: [one, one, one], signers: [first, second].map((signer) => signer.publicKey()) }
    await service.db.update(runApprovals).set(forged).where(eq(runApprovals.batch, batch.id))
    expect((await post(first)).body.approval).toMatchObject({ weight: 1, signers: [first.publicKey()] })
  })
})

describe('a host pays nothing', () => {
  /** A run that two of three have signed, while no relay runs. */
  async function started() {
    const given = await shared()
    await given.post(given.first)
    await given.post(given.second)
    return given
  }

  test('if the database has fewer signatures than the account needs', async () => {
    const { batch, first } = await started()
    const one = await signManifest(keypairSigner(first), await manifestIn(batch))
    await service.db
      .update(relayJobs)
      .set({ signature: formatSignatures([one, one]) })
      .where(eq(relayJobs.batch, batch.id))
    expect(await outcomeOf(batch)).toEqual({ received: [0n, 0n], lines: ['manifest-invalid', 'manifest-invalid'] })
  })

  test('if a signer was removed, or the threshold raised, before the payment', async () => {
    const removed = await started()
    await setOptions(runs.network, removed.employer.address, [removed.first, removed.second], {
      signer: { ed25519PublicKey: removed.second.publicKey(), weight: 0 },
    })
    expect((await outcomeOf(removed.batch)).received).toEqual([0n, 0n])
    const raised = await started()
    await setOptions(runs.network, raised.employer.address, [raised.first, raised.second], { medThreshold: 3 })
    expect((await outcomeOf(raised.batch)).received).toEqual([0n, 0n])
  })

  async function manifestIn(batch: RunBatch): Promise<Manifest> {
    const [job] = await runs.jobsOf(batch)
    const manifest = parseManifest(job?.manifest ?? '')
    if (!manifest) throw new Error('the run has no manifest')
    return manifest
  }
})
