import { and, asc, eq, inArray } from 'drizzle-orm'
import { batches, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { batchNotFound, isOwnBatch } from '#lib/directory/batches/batches.ts'
import { NEWEST_RUN } from '#lib/directory/batches/newest-run.ts'
import type { BatchProgress } from '#lib/directory/batches/status.ts'
import { RUNNABLE } from '#lib/directory/payouts/seals.ts'
import type { Employer } from '#lib/directory/users.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Network } from '#lib/stellar/network.ts'
import { readDelegations } from '#lib/wallet/account.ts'
import { hashSeal, type Manifest, type ManifestChange } from '#lib/wallet/manifest.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import type { BatchContext } from './job.ts'
import { judgeChannels, ledgersPerPayout } from './run-terms.ts'

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
export type RunProblem = { payoutId?: string; channel?: string; reason: RunReason } | ManifestChange

export const notReady = (errors: readonly RunProblem[]) =>
  new Refusal('run-not-ready', undefined, { details: { errors } })

/** A payout that may be run. */
type Runnable = Pick<typeof payouts.$inferSelect, 'id' | 'contractor' | 'address' | 'encryptedAmount'>

/** The same with the channel of its seal. */
export type Sealed = { [Name in keyof Runnable]: string } & { channel: string }

interface PlanContext {
  db: Database
  employer: Employer
  /** the account that pays */
  account: string
  batch: BatchContext
  network: Network
  token: string
}

/** What a run would pay now, and what is to be signed for it. Without a manifest there is nothing to pay. */
export interface RunPlan {
  progress: BatchProgress
  manifest?: Manifest
  sealed: readonly Sealed[]
}

/**
 * Plans the run of a batch from its rows and the account's delegations on the ledger.
 * @throws Refusal `batch-not-found`, `run-not-ready`; LedgerError
 */
export async function planRun(context: PlanContext, id: string): Promise<RunPlan> {
  const { db, employer, account, batch, network, token } = context
  const { progress, runnable } = await readRunnable(db, employer, id)
  if (runnable.length === 0) return { progress, sealed: [] }
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
  const payoutsOf = sealed.map(({ id: payout, contractor, address, channel, encryptedAmount }) => {
    return { payout, contractor, address, channel, sealHash: hashSeal(encryptedAmount) }
  })
  const { passphrase } = network
  return { progress, sealed, manifest: { passphrase, token, batch: id, account, delegations, payouts: payoutsOf } }
}

/** The progress of a batch, and what a run would pay, in the order of its instructions: nothing while a run is unfinished. */
export async function readRunnable(db: Database, employer: Employer, id: string) {
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

/** Whether the payouts still match the plan. */
export const areSame = (runnable: readonly Runnable[], sealed: readonly Sealed[]): boolean =>
  runnable.length === sealed.length &&
  runnable.every(({ id, address, encryptedAmount }, index) => {
    const planned = sealed[index]
    return planned?.id === id && planned.address === address && planned.encryptedAmount === encryptedAmount
  })

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
