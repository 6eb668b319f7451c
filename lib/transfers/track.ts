import { setTimeout as pause } from 'node:timers/promises'
import { type ArchiveContext, ingestSoon } from '#lib/archive/ingest.ts'
import { log, openAttempts, withLogFields } from '#lib/observability/log.ts'
import { openAccounts } from '#lib/stellar/account.ts'
import type { Decision, LedgerRecord } from './decide.ts'
import { lookedUpIn, lookUpInPages, lookUpProbe, lookUpTransfer, lookUpWithAccount } from './look-up.ts'
import { openRecency } from './recency.ts'
import { type Attempt, resubmit, submitEnvelope, type TrackingContext } from './resubmit.ts'
import { type Envelope, findTransfer, findTransfers, type RecordedTransfer, setOf } from './rows.ts'
import { settle } from './settle.ts'
import { type Outcome, openWaiters, type Waiter, type WaitOptions } from './waiters.ts'

/** Submits recorded envelopes and finds out how their transfers end. Each process has one; it needs no key. */
export interface Tracker extends TrackingContext {
  /** the IDs of the transfers that this process recorded or was asked about */
  tracked: Pick<ReadonlyMap<string, unknown>, 'has' | 'size'>
  /** Submits an envelope that was just recorded, or tracks an earlier one, and waits for the outcome of its transfer. */
  submit(recorded: RecordedTransfer, options: SubmitOptions): Promise<Outcome>
  /** Tracks transfers until they are settled, even if no caller waits for them, and waits for their outcomes. */
  track(ids: readonly string[], options: TrackOptions): Promise<Outcome[]>
  /** Ends the tracking; resolves when the round in progress is over. */
  stop(): Promise<void>
}

type SubmitOptions = { innerHash: string; isNew: boolean; waitMs: number }

interface TrackOptions extends WaitOptions {
  /**
   * `requested`: the next round looks them up even if a process has done so in this ledger, and ends the wait.
   * `untracked`: skips the transfers that this process already tracks. Both begin the next round now.
   */
  lookUp?: 'requested' | 'untracked'
}

/** What a process remembers between its rounds. Nothing is lost with it: the rest is in rows. */
interface Tracking extends TrackingContext {
  /** gets the events of settled transfers */
  archive: ArchiveContext | undefined
  /** runs the work for one transfer, whose failure doesn't stop the others */
  attempt: ReturnType<typeof openAttempts>
  waiters: ReturnType<typeof openWaiters>
  /** IDs of the transfers that this process recorded or was asked about, each with the last round that tried it */
  tracked: Map<string, number>
  /** waits for the next round, which always looks up their transfers */
  requests: Waiter[]
  /** transfers of which a new envelope is being submitted: no round looks them up in the meantime */
  submitting: Set<RecordedTransfer>
  rounds: number
}

export function openTracker(
  options: Pick<TrackingContext, 'network' | 'database' | 'now'> & { archive?: ArchiveContext | undefined },
): Tracker {
  const { network, database, now, archive } = options
  const recency = openRecency(() => now().getTime())
  const context: TrackingContext = { network, database, now, recency, readAccount: openAccounts(network) }
  const tracking: Tracking = {
    ...context,
    archive,
    attempt: openAttempts((transfer, failure) => log('error', 'submission', { transfer, failure })),
    waiters: openWaiters(recency),
    tracked: new Map(),
    requests: [],
    submitting: new Set(),
    rounds: 0,
  }
  const { tracked, waiters, attempt } = tracking
  let running: Promise<void> | undefined
  let wake = new AbortController() // ends the pause until the next ledger is due
  let isStopped = false

  async function submit(recorded: RecordedTransfer, { innerHash, isNew, waitMs }: SubmitOptions): Promise<Outcome> {
    const { transfer, envelopes } = recorded
    if (transfer.status !== 'open') return { kind: 'settled', transfer }
    const envelope = envelopes.find((one) => one.innerHash === innerHash)
    // An envelope that the network refused is submitted again by the next round: once per ledger, not per request.
    if (envelope && isNew) void attempt(transfer.id, () => submitNew(tracking, recorded, envelope))
    const [outcome = { kind: 'open' }] = await track([transfer.id], { envelope, waitMs })
    return outcome
  }

  async function track(ids: readonly string[], { lookUp, ...wait }: TrackOptions): Promise<Outcome[]> {
    const chosen = lookUp === 'untracked' ? ids.filter((id) => !tracked.has(id)) : ids
    if (chosen.length === 0) return []
    const added = chosen.map((id) => waiters.add(id, wait))
    for (const id of chosen) tracked.set(id, tracked.get(id) ?? tracking.rounds)
    if (lookUp === 'requested') tracking.requests.push(...added)
    if (lookUp) wake.abort()
    running ??= withLogFields({}, run)
    return await Promise.all(added.map(({ outcome }) => outcome))
  }

  /** One round per closed ledger while anything is tracked, outside any request. No `await` follows the last check. */
  async function run(): Promise<void> {
    // Transfers that are tracked at the same time share the first round.
    await Promise.resolve()
    while (tracked.size > 0 && !isStopped) {
      wake = new AbortController()
      await attempt('all', () => runRound(tracking))
      if (tracked.size === 0 || isStopped) break
      await pause(network.pollMs)
      await pause(recency.dueIn(), undefined, { signal: wake.signal }).catch(() => undefined)
    }
    running = undefined
  }

  const stop = async () => {
    isStopped = true
    wake.abort()
    await running
  }

  return { ...context, tracked, submit, track, stop }
}

async function submitNew(tracking: Tracking, recorded: RecordedTransfer, envelope: Envelope): Promise<void> {
  const { recency, submitting } = tracking
  submitting.add(recorded)
  try {
    const ledger = Math.max(recency.latestLedger(), recorded.transfer.recordedLedger)
    await followUp(tracking, recorded, await submitEnvelope(tracking, envelope, ledger))
  } finally {
    submitting.delete(recorded)
  }
}

async function runRound(tracking: Tracking): Promise<void> {
  tracking.rounds += 1
  const requests = tracking.requests.splice(0)
  try {
    const open = await readOpen(tracking)
    for (const recorded of open) tracking.waiters.tellRefused(recorded)
    const later = await lookUpOpen(tracking, open, new Set(requests.map(({ id }) => id)))
    tracking.requests.push(...requests.filter(({ id }) => later.has(id)))
  } finally {
    for (const one of requests) if (!tracking.requests.includes(one)) one.finish({ kind: 'open' })
  }
}

/** Reads the open tracked transfers, in the order of their next lookup, and stops tracking the settled ones. */
async function readOpen(tracking: Tracking): Promise<RecordedTransfer[]> {
  const { database, tracked, submitting, waiters } = tracking
  // Transfers that are tracked while the rows are read wait for the next round.
  const ids = [...tracked].toSorted(([, one], [, other]) => one - other).map(([id]) => id)
  const rows = new Map((await findTransfers(await database(), ids)).map((row) => [row.transfer.id, row]))
  const isBusy = new Set([...submitting].map(({ transfer }) => transfer.id))
  const open: RecordedTransfer[] = []
  for (const id of ids) {
    const row = rows.get(id)
    if (isBusy.has(id)) continue
    if (row?.transfer.status === 'open') open.push(row)
    else tracked.delete(id)
    if (row && row.transfer.status !== 'open') waiters.tellSettled(row.transfer)
  }
  return open
}

/** A walk begins at most LONGEST_WALK ledgers back. One round looks up at most MOST transfers one by one. */
const LONGEST_WALK = 20
const MOST = 25

/**
 * Learns whether a ledger has closed, and only then looks transfers up: several by the pages of the ledgers since the last
 * lookup; a single one, or with an RPC that has no pages, by one of them, a different one each time, and then all of them.
 * In a process that was idle, this first lookup shows the latest ledger, and the others are looked up by pages. Resolves
 * to the IDs of the transfers that the next round has to look up.
 */
async function lookUpOpen(
  tracking: Tracking,
  open: readonly RecordedTransfer[],
  requested: ReadonlySet<string>,
): Promise<Set<string>> {
  const { recency, attempt, tracked, rounds } = tracking
  const done = new Set<RecordedTransfer>()
  const isRequested = ({ transfer }: RecordedTransfer) => requested.has(transfer.id)
  const findRecent = () => {
    const oldest = Math.max(0, recency.latestLedger() - LONGEST_WALK)
    return open.filter((one) => !done.has(one) && !isRequested(one) && lookedUpIn(recency, one) >= oldest)
  }
  // With an RPC that has no pages, or whose nodes lag, all of them are looked up one by one.
  const walk = (recent: RecordedTransfer[]) => attempt('pages', () => lookUpMany(tracking, recent, done))
  const recent = findRecent()
  const isWalked = recent.length > 1 && (await walk(recent))
  const [probe] = open
  if (probe && !isWalked) {
    if (tracked.has(probe.transfer.id)) tracked.set(probe.transfer.id, rounds)
    const record = await lookUpProbe(tracking, probe)
    if (record && (await attempt(probe.transfer.id, () => lookUpOne(tracking, probe, record)))) done.add(probe)
    const others = recent.length > 1 ? [] : findRecent()
    if (others.length > 1) await walk(others)
  }
  const latest = recency.latestLedger()
  const due = open
    .filter((one) => !done.has(one) && (isRequested(one) || lookedUpIn(recency, one) < latest))
    .toSorted((one, other) => Number(isRequested(other)) - Number(isRequested(one)))
  const rest = due.slice(0, MOST)
  for (const { transfer } of rest) if (tracked.has(transfer.id)) tracked.set(transfer.id, rounds)
  await Promise.all(rest.map((one) => attempt(one.transfer.id, () => lookUpOne(tracking, one))))
  return new Set(due.slice(MOST).map(({ transfer }) => transfer.id))
}

/** Looks transfers up in the pages of the ledgers. Adds each transfer that needs no separate lookup to `done`. */
async function lookUpMany(tracking: Tracking, recent: RecordedTransfer[], done: Set<RecordedTransfer>): Promise<void> {
  const { records, absent, due, ledger } = await lookUpInPages(tracking, recent)
  for (const one of [...records.keys(), ...absent]) done.add(one)
  await Promise.all([
    ...[...records].map(([one, record]) => tracking.attempt(one.transfer.id, () => lookUpOne(tracking, one, record))),
    ...due.map((one) => tracking.attempt(one.transfer.id, () => submitAgain(tracking, one, ledger))),
  ])
}

/** @param record the record that was found under one of its hashes */
async function lookUpOne(tracking: Tracking, recorded: RecordedTransfer, record?: LedgerRecord): Promise<void> {
  const result = await lookUpTransfer(tracking, recorded, record)
  if (result && 'status' in result) await end(tracking, recorded, result)
  else if (result) await submitAgain(tracking, recorded, result.ledger)
}

/** @param ledger the ledger up to which none of its envelopes was applied */
async function submitAgain(tracking: Tracking, recorded: RecordedTransfer, ledger: number): Promise<void> {
  await followUp(tracking, recorded, await resubmit(tracking, recorded, ledger))
}

/** Finds out whether a transaction has used the number, if an envelope was not accepted. If not, notifies the requests. */
async function followUp(tracking: Tracking, recorded: RecordedTransfer, attempted: Attempt): Promise<void> {
  if (attempted === 'submitted') return
  const { database, waiters } = tracking
  // A rival may have been recorded while the network refused this envelope.
  const current = attempted === 'refused' ? await findTransfer(await database(), recorded.transfer.id) : recorded
  if (current?.transfer.status !== 'open') return
  const decision = attempted === 'stuck' ? undefined : await lookUpWithAccount(tracking, current)
  if (decision) await end(tracking, current, decision)
  else waiters.tellRefused(current, { isStuck: attempted !== 'refused' })
}

/** Does nothing if an envelope joined the transfer in the meantime: the next round looks that up, too. */
async function end(tracking: Tracking, recorded: RecordedTransfer, decision: Decision): Promise<void> {
  const { database, now, archive, tracked, waiters } = tracking
  const { transfer, envelopes } = recorded
  const settled = await settle(await database(), transfer.id, { decision, lookedUp: setOf(envelopes), now: now() })
  if (!settled) return
  const [hash, ledger, code] = [settled.hash, settled.ledger, settled.resultCode].map((value) => value ?? undefined)
  const { id, status, account } = settled
  log('info', 'transfer settled', { transfer: id, account, status, hash, ledger, code })
  tracked.delete(id)
  waiters.tellSettled(settled)
  if (archive) ingestSoon(archive)
}
