import { randomUUID } from 'node:crypto'
import { and, asc, eq, inArray } from 'drizzle-orm'
import { z } from 'zod'
import { batches, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import type { Session } from '#lib/auth/session.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
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
import { type BatchContext, queueLines } from './job.ts'
import { findBusyChannels, judgeChannels, ledgersPerPayout } from './run-terms.ts'

/** The body of POST /batches/{id}/run. */
export const runRequest = z.object({
  signature: plainText(200).refine((text) => Buffer.from(text, 'base64').length === 64, {
    error: 'must be 64 bytes in base64',
  }),
})

type RunReason =
  | 'no-address'
  | 'seal-malformed'
  | 'seal-key'
  | 'seal-elsewhere'
  | 'channel-unknown'
  | 'channel-unavailable'
  | 'channel-busy'
  | 'delegation-missing'
  | 'delegation-too-short'
  | 'quota-transfers'
  | 'manifest'

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
  const { progress, runnable } = await readPlan(db, employer, id)
  if (runnable.length === 0) return progress
  const channels = await judgeChannels(db, { token, account })
  const [sealed, unsealed] = checkSeals(runnable, { batch: id, kid: batch.relayKey })
  const used = [...new Set(sealed.map(({ channel }) => channel))].sort()
  const unusable = used.flatMap((channel) => {
    const reason = channels.get(channel)
    return reason === null ? [] : [{ channel, reason: reason ?? ('channel-unknown' as const) }]
  })
  if (used.length === 0 || unusable.some(({ reason }) => reason === 'channel-unknown'))
    throw notReady([...unsealed, ...unusable])
  const pairs = used.map((spender) => ({ owner: account, spender }))
  const read = await readDelegations({ rpc: network.server, ...network, token }, pairs)
  const delegations = used.map((channel, index) => {
    return { channel, liveUntilLedger: read.delegations[index]?.live_until_ledger ?? 0 }
  })
  const undelegated = delegations.flatMap(({ channel, liveUntilLedger }): RunProblem[] => {
    if (liveUntilLedger === 0) return [{ channel, reason: 'delegation-missing' }]
    const payoutsOfChannel = sealed.filter((payout) => payout.channel === channel).length
    const needed = read.latestLedger + ledgersPerPayout(network) * payoutsOfChannel
    return liveUntilLedger < needed ? [{ channel, reason: 'delegation-too-short' }] : []
  })
  const problems = [...unsealed, ...unusable, ...undelegated]
  if (problems.length > 0) throw notReady(problems)
  const manifest: Manifest = {
    passphrase: network.passphrase,
    token,
    batch: id,
    account,
    delegations,
    payouts: sealed.map(({ id: payout, contractor, address, channel, encryptedAmount }) => {
      return { payout, contractor, address, channel, sealHash: hashSeal(encryptedAmount) }
    }),
  }
  const entry = (await readAccount(network.server, account)).account
  if (!entry || !isSignedManifest(manifest, signature, authOf(account, entry))) throw notReady([{ reason: 'manifest' }])
  return await queueRun(context, { manifest, signature, sealed })
}

const notReady = (errors: readonly RunProblem[]) => new Refusal('run-not-ready', undefined, { details: { errors } })

/** A payout that may be run. */
type Runnable = Pick<typeof payouts.$inferSelect, 'id' | 'contractor' | 'address' | 'encryptedAmount'>

/** The same with the channel of its seal. */
type Sealed = { [Name in keyof Runnable]: string } & { channel: string }

/** The progress of a batch, and what a run would pay, in the order of its instructions: nothing while a run is unfinished. */
async function readPlan(db: Database, employer: Employer, id: string) {
  const { status, settledCount, failedCount, payoutCount } = batches
  const [batch] = await db
    .select({ status, settledCount, failedCount, payoutCount, run: NEWEST_RUN })
    .from(batches)
    .where(isOwnBatch(employer, id))
  if (!batch) throw batchNotFound()
  const { run, ...counts } = batch
  const progress: BatchProgress = { ...counts, ...(run && { run }) }
  if (run?.status === 'running') return { progress, runnable: [] }
  if (counts.status === 'draft') throw new Refusal('run-not-ready', 'the batch is a draft: make it ready first')
  const { id: payout, contractor, address, encryptedAmount, sequence } = payouts
  const runnable = await db
    .select({ id: payout, contractor, address, encryptedAmount })
    .from(payouts)
    .where(and(eq(payouts.batch, id), inArray(payouts.status, [...RUNNABLE])))
    .orderBy(asc(sequence))
  return { progress, runnable }
}

/** Reads the channel of each payout from its seal. The rest are problems. Nothing here can open a seal. */
function checkSeals(
  runnable: readonly Runnable[],
  { batch, kid }: { batch: string; kid: string },
): [Sealed[], RunProblem[]] {
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

/** Records the run and uses its quota in one SQL transaction, if seals and addresses are still those of the manifest. */
async function queueRun(
  { db, employer, session, limits, now, batch, token }: RunContext,
  { manifest, signature, sealed }: { manifest: Manifest; signature: string; sealed: readonly Sealed[] },
): Promise<BatchProgress> {
  const id = randomUUID()
  const { account, delegations } = manifest
  return await transactFor(db, employer.organisation, async (tx) => {
    const unavailable = ({ channel }: { channel: string }) => ({ channel, reason: 'channel-unavailable' as const })
    if (!(await lockPayments(tx, token))) throw notReady(delegations.map(unavailable))
    // While the batch is locked, no other run of it can begin.
    await lockBatches(tx, isOwnBatch(employer, manifest.batch))
    const { progress, runnable } = await readPlan(tx, employer, manifest.batch)
    if (runnable.length === 0) return progress
    const isSame = ({ id, address, encryptedAmount }: Runnable, signed: Sealed | undefined) =>
      signed?.id === id && signed.address === address && signed.encryptedAmount === encryptedAmount
    const areSame =
      runnable.length === sealed.length && runnable.every((payout, index) => isSame(payout, sealed[index]))
    if (!areSame) throw notReady([{ reason: 'manifest' }])
    const day = await readQuotaDay(tx)
    await tx.insert(relayJobs).values({
      id,
      userKind: session.kind,
      userSub: account,
      relayKey: batch.relayKey,
      batch: manifest.batch,
      manifest: formatManifest(manifest),
      signature,
      quotaDay: day,
      createdAt: now,
    })
    const liveUntil = new Map(delegations.map((each) => [each.channel, each.liveUntilLedger]))
    const lines = sealed.map(({ id: payout, address, channel, encryptedAmount }, position) => ({
      job: id,
      position,
      recipient: address,
      payout,
      spender: channel,
      liveUntil: liveUntil.get(channel) ?? null,
      sealedAmount: encryptedAmount,
      quotaAccount: account,
    }))
    await queueLines(tx, lines)
    if (!(await reserveCount(tx, { account, day, count: lines.length }, limits))) {
      throw notReady([{ reason: 'quota-transfers' }])
    }
    // A second run that the account starts at the same time waits for the quota's row, and sees the first.
    const busy = await findBusyChannels(tx, account, id)
    const shared = sealed.find(({ channel }) => busy.has(channel))?.channel
    if (shared) throw notReady([{ channel: shared, reason: 'channel-busy' }])
    const entry = { ...employer, action: 'batch.run' as const, subject: manifest.batch }
    await recordAudit(tx, now, { ...entry, detail: { payouts: lines.length } })
    return (await readPlan(tx, employer, manifest.batch)).progress
  })
}
