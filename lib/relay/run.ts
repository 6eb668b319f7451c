import { randomUUID } from 'node:crypto'
import { and, asc, eq, inArray } from 'drizzle-orm'
import { z } from 'zod'
import { batches, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Session } from '#lib/auth/session.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { batchNotFound, isOwnBatch } from '#lib/directory/batches/batches.ts'
import { NEWEST_RUN } from '#lib/directory/batches/newest-run.ts'
import { lockBatches } from '#lib/directory/batches/progress.ts'
import type { BatchProgress } from '#lib/directory/batches/status.ts'
import { isId } from '#lib/directory/ids.ts'
import { RUNNABLE } from '#lib/directory/payouts/seals.ts'
import type { Employer } from '#lib/directory/users.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { authOf, readAccount } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { plainText } from '#lib/text/plain-text.ts'
import { type QuotaLimits, readQuotaDay, reserveCount } from '#lib/transfers/quota.ts'
import { lockPayments } from '#lib/transfers/stop.ts'
import { readDelegations } from '#lib/wallet/account.ts'
import { formatManifest, hashSeal, isSignedManifest, type Manifest } from '#lib/wallet/manifest.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import type { BatchContext } from './job.ts'
import { findBusyChannels, judgeChannels, ledgersPerPayout } from './run-terms.ts'
import { wakeRelays } from './wake-up.ts'

/** The body of POST /batches/{id}/run. */
export const runRequest = z.object({
  signature: plainText(200).refine((text) => Buffer.from(text, 'base64').length === 64, {
    error: 'must be 64 bytes in base64',
  }),
})

const RUN_REASONS = [
  'no-address',
  'seal-malformed',
  'seal-key',
  'seal-elsewhere',
  'channel-unknown',
  'channel-unavailable',
  'channel-busy',
  'delegation-missing',
  'delegation-too-short',
  'quota-transfers',
  'manifest',
] as const
type RunReason = (typeof RUN_REASONS)[number]

/** One reason, and the payout or the channel that it concerns, if it concerns one. */
type RunProblem = { payoutId?: string; channel?: string; reason: RunReason }

/** The context that starting a run needs. */
interface RunContext {
  db: Database
  employer: Employer
  /** the account that delegated, and whose signer signed */
  session: Session
  batch: BatchContext
  network: Network
  token: string
  limits: QuotaLimits
  now: Date
}

/**
 * Starts a run: the relay pays every payout of a batch that is `ready` or `failed` from the employer's delegations.
 * Nothing changes while a run of the batch is unfinished, or if there is nothing left to pay.
 * @throws Refusal `batch-not-found`, `run-not-ready`; LedgerError
 */
export async function startRun(
  context: RunContext,
  { id, signature }: z.output<typeof runRequest> & { id: string },
): Promise<BatchProgress> {
  const { db, employer, session, batch, network, token } = context
  const account = session.sub
  if (!isId(id)) throw batchNotFound()
  const plan = await readPlan(db, employer, id)
  if ('progress' in plan) return plan.progress
  const channels = await judgeChannels(db, { token, account })
  const [sealed, unsealed] = await checkSeals(plan.payouts, { batch: id, kid: batch.relayKey })
  const used = channelsOf(sealed)
  const unusable = used.flatMap((channel) => {
    const reason = channels.get(channel)
    return reason === null ? [] : [{ channel, reason: reason ?? ('channel-unknown' as const) }]
  })
  if (used.length === 0 || unusable.some(({ reason }) => reason === 'channel-unknown'))
    throw notReady([...unsealed, ...unusable])
  const pairs = used.map((spender) => ({ owner: account, spender }))
  const { delegations, latestLedger } = await readDelegations({ rpc: network.server, ...network, token }, pairs)
  const delegated = used.map((channel, index) => ({
    channel,
    liveUntilLedger: delegations[index]?.live_until_ledger,
    needed: latestLedger + ledgersPerPayout(network) * sealed.filter((payout) => payout.channel === channel).length,
  }))
  const undelegated = delegated.flatMap(({ channel, liveUntilLedger, needed }): RunProblem[] => {
    if (liveUntilLedger === undefined) return [{ channel, reason: 'delegation-missing' }]
    return liveUntilLedger < needed ? [{ channel, reason: 'delegation-too-short' }] : []
  })
  const problems = [...unsealed, ...unusable, ...undelegated]
  if (problems.length > 0) throw notReady(problems)
  const manifest: Manifest = {
    passphrase: network.passphrase,
    token,
    batch: id,
    account,
    delegations: delegated.map(({ channel, liveUntilLedger = 0 }) => ({ channel, liveUntilLedger })),
    payouts: sealed.map(({ id: payout, contractor, address, channel, encryptedAmount }) => {
      return { payout, contractor, address, channel, sealHash: hashSeal(encryptedAmount) }
    }),
  }
  const entry = (await readAccount(network.server, account)).account
  if (!entry || !isSignedManifest(manifest, signature, authOf(account, entry))) throw notReady([{ reason: 'manifest' }])
  return await queueRun(context, { manifest, signature, payouts: sealed })
}

const channelsOf = (sealed: readonly Sealed[]) => [...new Set(sealed.map(({ channel }) => channel))].sort()
const unavailable = (channel: string): RunProblem => ({ channel, reason: 'channel-unavailable' })
const notReady = (errors: readonly RunProblem[]) => new Refusal('run-not-ready', undefined, { details: { errors } })

/** A payout that may be run. */
interface Runnable {
  id: string
  contractor: string
  address: string | null
  encryptedAmount: string | null
}

type Sealed = { [Name in keyof Runnable]: string } & { channel: string }

async function readProgress(db: Database, employer: Employer, id: string): Promise<BatchProgress> {
  const { status, settledCount, failedCount, payoutCount } = batches
  const [row] = await db
    .select({ status, settledCount, failedCount, payoutCount, run: NEWEST_RUN })
    .from(batches)
    .where(isOwnBatch(employer, id))
  if (!row) throw batchNotFound()
  const { run, ...progress } = row
  return { ...progress, ...(run && { run }) }
}

/** The payouts that a run would pay, or the progress of the batch if there is nothing to start. */
async function readPlan(
  db: Database,
  employer: Employer,
  id: string,
): Promise<{ payouts: Runnable[] } | { progress: BatchProgress }> {
  const progress = await readProgress(db, employer, id)
  if (progress.run?.status === 'running') return { progress }
  if (progress.status === 'draft') throw new Refusal('run-not-ready', 'the batch is a draft: make it ready first')
  const payouts = await findRunnable(db, id)
  return payouts.length === 0 ? { progress } : { payouts }
}

/** The payouts of a batch that are `ready` or `failed`, in the order of its instructions. */
async function findRunnable(db: Database, batch: string): Promise<Runnable[]> {
  const { id, contractor, address, encryptedAmount } = payouts
  return await db
    .select({ id, contractor, address, encryptedAmount })
    .from(payouts)
    .where(and(eq(payouts.batch, batch), inArray(payouts.status, [...RUNNABLE])))
    .orderBy(asc(payouts.sequence))
}

/** Reads the channel of each payout from its seal. The rest are problems. Nothing here can open a seal. */
async function checkSeals(
  runnable: readonly Runnable[],
  { batch, kid }: { batch: string; kid: string },
): Promise<[Sealed[], RunProblem[]]> {
  const sealed: Sealed[] = []
  const problems: RunProblem[] = []
  for (const { id, contractor, address, encryptedAmount } of runnable) {
    const header = encryptedAmount === null ? undefined : readSeal(encryptedAmount)
    const fits = header?.batch === batch && header.contractor === contractor
    if (address === null) problems.push({ payoutId: id, reason: 'no-address' })
    else if (!header || encryptedAmount === null) problems.push({ payoutId: id, reason: 'seal-malformed' })
    else if (header.kid !== kid) problems.push({ payoutId: id, reason: 'seal-key' })
    else if (!fits) problems.push({ payoutId: id, reason: 'seal-elsewhere' })
    else sealed.push({ id, contractor, address, encryptedAmount, channel: header.spender })
  }
  return [sealed, problems]
}

/**
 * Records the run with a line for each payout, uses the account's quota for all of them, and wakes the relays, in one SQL
 * transaction. The seals and addresses must still be those of the manifest.
 */
async function queueRun(
  context: RunContext,
  { manifest, signature, payouts: sealed }: { manifest: Manifest; signature: string; payouts: readonly Sealed[] },
): Promise<BatchProgress> {
  const { db, employer, session, limits, now, batch, token } = context
  const job = randomUUID()
  return await transactFor(db, employer.organisation, async (tx) => {
    if (!(await lockPayments(tx, token))) throw notReady(channelsOf(sealed).map(unavailable))
    // While the batch is locked, no other run of it can begin.
    await lockBatches(tx, isOwnBatch(employer, manifest.batch))
    const plan = await readPlan(tx, employer, manifest.batch)
    if ('progress' in plan) return plan.progress
    const isSame =
      plan.payouts.length === sealed.length &&
      plan.payouts.every(({ id, address, encryptedAmount }, index) => {
        const signed = sealed[index]
        return signed?.id === id && signed.address === address && signed.encryptedAmount === encryptedAmount
      })
    if (!isSame) throw notReady([{ reason: 'manifest' }])
    const day = await readQuotaDay(tx)
    await tx.insert(relayJobs).values({
      id: job,
      userKind: session.kind,
      userSub: session.sub,
      relayKey: batch.relayKey,
      batch: manifest.batch,
      manifest: formatManifest(manifest),
      signature,
      quotaDay: day,
      createdAt: now,
    })
    const liveUntil = new Map(manifest.delegations.map((each) => [each.channel, each.liveUntilLedger]))
    const lines = sealed.map(({ id, address, channel, encryptedAmount }, position) => ({
      job,
      position,
      recipient: address,
      payout: id,
      spender: channel,
      liveUntil: liveUntil.get(channel) ?? null,
      sealedAmount: encryptedAmount,
      quotaAccount: session.sub,
    }))
    for (const part of partsOf(lines)) await tx.insert(relayLines).values(part)
    const claim = { account: session.sub, day, count: lines.length }
    if (!(await reserveCount(tx, claim, limits))) throw notReady([{ reason: 'quota-transfers' }])
    // A second run that the account starts at the same time waits for the quota's row, and sees the first.
    const busy = await findBusyChannels(tx, session.sub, job)
    const shared = sealed.find(({ channel }) => busy.has(channel))?.channel
    if (shared) throw notReady([{ channel: shared, reason: 'channel-busy' }])
    await recordAudit(tx, now, {
      ...employer,
      action: 'batch.run',
      subject: manifest.batch,
      detail: { payouts: lines.length },
    })
    await wakeRelays(tx)
    return await readProgress(tx, employer, manifest.batch)
  })
}
