import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import { runApprovals } from '#drizzle/schema/approvals.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { isOwnBatch } from '#lib/directory/batches/batches.ts'
import { lockBatches } from '#lib/directory/batches/progress.ts'
import type { BatchProgress } from '#lib/directory/batches/status.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { authOf, readAccount } from '#lib/stellar/account.ts'
import { plainText } from '#lib/text/plain-text.ts'
import { type QuotaLimits, readQuotaDay, reserveCount } from '#lib/transfers/quota.ts'
import { lockPayments } from '#lib/transfers/stop.ts'
import {
  type AuthorizedSigners,
  formatManifest,
  formatSignatures,
  type Manifest,
  signaturesOn,
  weightOf,
} from '#lib/wallet/manifest.ts'
import { type Approval, type ApprovalContext, findParty, type RunParty, readVoid } from './approval.ts'
import { type BatchContext, queueLines } from './job.ts'
import { areSame, notReady, planRun, type RunProblem, readRunnable, type Sealed } from './run-plan.ts'
import { findBusyChannels } from './run-terms.ts'

/** The body of POST /batches/{id}/run. */
export const runRequest = z.object({
  signature: plainText(200).refine((text) => Buffer.from(text, 'base64').length === 64, {
    error: 'must be 64 bytes in base64',
  }),
  payer: plainText(56).optional().meta({
    description: 'the account that pays, if the organisation has several; by default that of the session',
  }),
})

/** The context that starting a run needs. */
interface RunContext extends ApprovalContext {
  limits: QuotaLimits
}

/** A batch with what is signed so far of a run that has not started. */
type ApprovedProgress = BatchProgress & { approval?: Approval }

/**
 * Adds a signature to the run of a batch, and starts the run once the signers' weights reach the medium threshold of the account that
 * pays: the relay then pays every payout that is `ready` or `failed` from the account's delegations. Nothing changes while a run of
 * the batch is unfinished, or if there is nothing left to pay.
 * @throws Refusal `batch-not-found`, `run-not-ready`, `wallet-required`; LedgerError
 */
export async function startRun(
  context: RunContext,
  { id, signature, payer }: z.output<typeof runRequest> & { id: string },
): Promise<ApprovedProgress> {
  const { db, network } = context
  const party = await findParty(context, { id, payer })
  const { progress, manifest, sealed } = await planRun({ ...context, ...party }, id)
  if (!manifest) return progress
  const entry = (await readAccount(network.server, party.account)).account
  const account = entry && authOf(party.account, entry)
  if (!account || signaturesOn(manifest, [signature], account).length === 0)
    throw notReady([{ reason: 'manifest' }, ...(await readVoid(db, manifest))])
  return await approve(context, party, { manifest, signature, sealed, account })
}

interface SignedPlan {
  manifest: Manifest
  signature: string
  sealed: readonly Sealed[]
  account: AuthorizedSigners
}

/** Keeps the signature, or starts the run with it, in one SQL transaction, if seals and addresses are still those of the manifest. */
async function approve(
  { db, now, batch, token, limits }: RunContext,
  { employer, account: payer }: RunParty,
  { manifest, signature, sealed, account }: SignedPlan,
): Promise<ApprovedProgress> {
  const id = manifest.batch
  return await transactFor(db, employer.organisation, async (tx) => {
    const unavailable = ({ channel }: { channel: string }) => ({ channel, reason: 'channel-unavailable' as const })
    if (!(await lockPayments(tx, token))) throw notReady(manifest.delegations.map(unavailable))
    // While the batch is locked, no other run of it can begin, and no other signature is added.
    await lockBatches(tx, isOwnBatch(employer, id))
    const { progress, runnable } = await readRunnable(tx, employer, id)
    if (runnable.length === 0) {
      await tx.delete(runApprovals).where(eq(runApprovals.batch, id))
      return progress
    }
    if (!areSame(runnable, sealed)) throw notReady([{ reason: 'manifest' }])
    const text = formatManifest(manifest)
    const changes = await readVoid(tx, manifest)
    const [kept] = await tx.select().from(runApprovals).where(eq(runApprovals.batch, id))
    const earlier = kept?.manifest === text ? kept.signatures : []
    const before = signaturesOn(manifest, earlier, account)
    const signed = signaturesOn(manifest, [...earlier, signature], account)
    const entry = { ...employer, subject: id }
    if (changes.length > 0) {
      const reasons = [...new Set(changes.map(({ reason }) => reason))]
      await recordAudit(tx, now, { ...entry, action: 'batch.approval-void', detail: { changes: reasons } })
    }
    const added = signed.find(({ key }) => before.every((one) => one.key !== key))
    const needed = account.thresholds.medium
    const isEnough = weightOf(signed) >= needed
    // A run that one signer starts alone has one entry.
    if (added && (earlier.length > 0 || !isEnough))
      await recordAudit(tx, now, { ...entry, action: 'batch.approved', detail: { signer: added.key } })
    const signatures = signed.map((one) => one.signature)
    const signers = signed.map(({ key }) => key)
    const keep = async (errors?: readonly RunProblem[]) => {
      const row = { account: payer, manifest: text, signatures, signers, updatedAt: now }
      await tx
        .insert(runApprovals)
        .values({ batch: id, ...row })
        .onConflictDoUpdate({ target: runApprovals.batch, set: row })
      const approval = {
        weight: weightOf(signed),
        needed,
        signers,
        manifest: text,
        ...(errors && { errors: [...errors] }),
      }
      return { ...progress, approval: { ...approval, ...(changes.length > 0 && { void: changes }) } }
    }
    if (!isEnough) return await keep()
    try {
      await tx.transaction(async (start) => {
        await start.delete(runApprovals).where(eq(runApprovals.batch, id))
        await queueRun(start, { now, batch, limits, payer }, { manifest, signatures, sealed })
        await recordAudit(start, now, { ...entry, action: 'batch.run', detail: { payouts: sealed.length } })
      })
    } catch (error) {
      // The signatures of several outlast what is in the way of the start. Any of them sent again starts the run.
      if (signed.length === 1 || !(error instanceof Refusal) || error.code !== 'run-not-ready') throw error
      return await keep(error.details.errors as RunProblem[])
    }
    return (await readRunnable(tx, employer, id)).progress
  })
}

/** Records the run and uses its quota. */
async function queueRun(
  tx: Database,
  { now, batch, limits, payer }: { now: Date; batch: BatchContext; limits: QuotaLimits; payer: string },
  { manifest, signatures, sealed }: { manifest: Manifest; signatures: readonly string[]; sealed: readonly Sealed[] },
): Promise<void> {
  const id = randomUUID()
  const day = await readQuotaDay(tx)
  await tx.insert(relayJobs).values({
    id,
    userKind: 'ledger',
    userSub: payer,
    relayKey: batch.relayKey,
    batch: manifest.batch,
    manifest: formatManifest(manifest),
    signature: formatSignatures(signatures),
    quotaDay: day,
    createdAt: now,
  })
  const liveUntil = new Map(manifest.delegations.map((each) => [each.channel, each.liveUntilLedger]))
  const lines = sealed.map(({ id: payout, address, channel, encryptedAmount }, position) => ({
    job: id,
    position,
    recipient: address,
    payout,
    spender: channel,
    liveUntil: liveUntil.get(channel) ?? null,
    sealedAmount: encryptedAmount,
    quotaAccount: payer,
  }))
  await queueLines(tx, lines)
  if (!(await reserveCount(tx, { account: payer, day, count: lines.length }, limits)))
    throw notReady([{ reason: 'quota-transfers' }])
  // A second run that the account starts at the same time waits for the quota's row, and sees the first.
  const busy = await findBusyChannels(tx, payer, id)
  const shared = sealed.find(({ channel }) => busy.has(channel))?.channel
  if (shared) throw notReady([{ channel: shared, reason: 'channel-busy' }])
}
