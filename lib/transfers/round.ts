import { setTimeout as pause } from 'node:timers/promises'
import { type ArchiveContext, ingestSoon } from '#lib/archive/ingest.ts'
import { log, type openAttempts } from '#lib/observability/log.ts'
import type { LedgerView } from '#lib/stellar/view.ts'
import type { Decision } from './decide.ts'
import { walkLedgers } from './ledger-pages.ts'
import { lookUpProbe, lookUpTransfer, lookUpWithAccount, noteLookedUp, type Probe } from './look-up.ts'
import { type Attempt, resubmit, strideOf, submitEnvelope, type TrackingContext } from './resubmit.ts'
import { type Envelope, findTransfer, findTransfers, type RecordedTransfer, setOf } from './rows.ts'
import { settle } from './settle.ts'
import type { openWaiters, Waiter } from './waiters.ts'

/** What a process remembers between its rounds. Nothing is lost with it: the rest is in rows. */
export interface Tracking extends TrackingContext {
  /** gets the events of settled transfers */
  archive: ArchiveContext | undefined
  /** runs the work for one transfer, whose failure doesn't stop the others */
  attempt: ReturnType<typeof openAttempts>
  waiters: ReturnType<typeof openWaiters>
  /** IDs of the transfers that this process recorded or was asked about, each with the last round that tried it */
  tracked: Map<string, number>
  /** waits for the next round, which always looks up their transfers */
  requests: Waiter[]
  /** the transfers whose lookup is in progress, and those whose resubmission is: no second one begins */
  lookingUp: Set<string>
  resubmitting: Set<string>
  /** the look-ups and submissions in progress. No round waits for them: what one transfer waits for delays no other */
  inFlight: Set<Promise<unknown>>
  rounds: number
}

/** Begins the work for one transfer apart from the round. Resolves once it is over; its failure is logged. */
export function begin({ attempt, inFlight }: Tracking, { transfer }: RecordedTransfer, work: () => Promise<void>) {
  const working = attempt(transfer.id, work).finally(() => inFlight.delete(working))
  inFlight.add(working)
  return working
}

export async function submitNew(tracking: Tracking, recorded: RecordedTransfer, envelope: Envelope): Promise<void> {
  const ledger = Math.max(tracking.view.latestLedger(), recorded.transfer.recordedLedger)
  await followUp(tracking, recorded, await submitEnvelope(tracking, envelope, ledger))
}

export async function runRound(tracking: Tracking): Promise<void> {
  tracking.rounds += 1
  const requests = tracking.requests.splice(0)
  try {
    const open = await readOpen(tracking)
    for (const recorded of open) tracking.waiters.tellRefused(recorded)
    const begun = await lookUpOpen(tracking, open, new Set(requests.map(({ id }) => id)))
    for (const request of requests) {
      const lookedUp = begun.get(request.id)
      if (lookedUp) void lookedUp.then(() => request.finish({ kind: 'open' }))
      else if (tracking.tracked.has(request.id)) tracking.requests.push(request)
      else request.finish({ kind: 'open' })
    }
  } catch (error) {
    for (const request of requests) request.finish({ kind: 'open' })
    throw error
  }
}

/** Reads the open tracked transfers, in the order of their next lookup, and stops tracking the settled ones. */
async function readOpen(tracking: Tracking): Promise<RecordedTransfer[]> {
  const { database, tracked, waiters } = tracking
  // Transfers that are tracked while the rows are read wait for the next round.
  const ids = [...tracked].toSorted(([, one], [, other]) => one - other).map(([id]) => id)
  const rows = new Map((await findTransfers(await database(), ids)).map((row) => [row.transfer.id, row]))
  return ids.flatMap((id) => {
    const row = rows.get(id)
    if (row?.transfer.status === 'open') return [row]
    tracked.delete(id)
    waiters.tellEnded(id, row?.transfer)
    return []
  })
}

/** The ledger in which a transfer was last looked up; -1 if that is not known. */
const lookedUpIn = (view: LedgerView, { transfer }: RecordedTransfer): number =>
  view.hint(transfer.lookedUpLedger) ?? -1

/** Whether it is time to look a transfer up again by itself. */
const isDue = (view: LedgerView, recorded: RecordedTransfer): boolean => {
  const latest = view.latestLedger()
  return lookedUpIn(view, recorded) <= latest - strideOf(latest - recorded.transfer.recordedLedger)
}

/** A walk begins at most LONGEST_WALK ledgers back. At most MOST transfers are looked up one by one at a time. */
const LONGEST_WALK = 20
const MOST = 25

/** How long a round waits (ms) for the lookup that shows the latest ledger. */
const PROBE_MS = 1_000

/**
 * Learns whether a ledger has closed, and only then looks transfers up: several by the pages of the ledgers since the last
 * lookup; a single one, or with an RPC that has no pages, by one of them, a different one each time, and then all of them.
 * In a process that was idle, this first lookup shows the latest ledger, and the others are looked up by pages. Resolves
 * to the lookups that it has begun, by transfer; the next round looks up the others that are requested.
 */
async function lookUpOpen(tracking: Tracking, open: readonly RecordedTransfer[], requested: ReadonlySet<string>) {
  const { view, attempt, tracked, rounds, lookingUp } = tracking
  const begun = new Map<string, Promise<unknown>>()
  const isRequested = ({ transfer }: RecordedTransfer) => requested.has(transfer.id)
  const done = new Set<RecordedTransfer>()
  const lookUpNow = (one: RecordedTransfer, known?: Probe) => {
    done.add(one)
    if (tracked.has(one.transfer.id)) tracked.set(one.transfer.id, rounds)
    const lookedUp = begin(tracking, one, () => lookUpOne(tracking, one, known))
    begun.set(one.transfer.id, lookedUp)
  }
  const findRecent = () => {
    const oldest = Math.max(0, view.latestLedger() - LONGEST_WALK)
    return open.filter((one) => !done.has(one) && !isRequested(one) && lookedUpIn(view, one) >= oldest)
  }
  // With an RPC that has no pages, or whose nodes lag, all of them are looked up one by one.
  const walk = (recent: RecordedTransfer[]) => attempt('pages', () => lookUpMany(tracking, recent, done))
  const recent = findRecent()
  const isWalked = recent.length > 1 && (await walk(recent))
  const [probed] = open
  let probe: Probe | undefined
  if (probed && !isWalked) {
    if (tracked.has(probed.transfer.id)) tracked.set(probed.transfer.id, rounds)
    const timeUp = pause(PROBE_MS, undefined, { ref: false })
    probe = await Promise.race([lookUpProbe(tracking, probed), timeUp])
    if (probe?.record && !lookingUp.has(probed.transfer.id)) lookUpNow(probed, probe)
    const others = recent.length > 1 ? [] : findRecent()
    if (others.length > 1) await walk(others)
  }
  const due = open
    .filter((one) => !done.has(one) && !lookingUp.has(one.transfer.id))
    .filter((one) => isRequested(one) || isDue(view, one))
    .toSorted((one, other) => Number(isRequested(other)) - Number(isRequested(one)))
  const now = due.slice(0, Math.max(0, MOST - lookingUp.size))
  for (const one of now) lookUpNow(one, one === probed ? probe : undefined)
  return begun
}

/**
 * Looks transfers up in the pages of the ledgers since their last lookup, that ledger included: the RPC always has it, and a
 * later one only once it has closed. Adds each transfer that needs no separate lookup to `done`.
 */
async function lookUpMany(tracking: Tracking, recent: RecordedTransfer[], done: Set<RecordedTransfer>): Promise<void> {
  const { network, view, database } = tracking
  const since = Math.min(...recent.map((one) => lookedUpIn(view, one)))
  const { records, absent, latestLedger: ledger } = await walkLedgers(network, recent, since)
  view.lookedUp(ledger)
  const due = absent.filter((one) => lookedUpIn(view, one) < ledger)
  await noteLookedUp(await database(), due, ledger)
  for (const one of [...records.keys(), ...absent]) done.add(one)
  for (const [one, record] of records) void begin(tracking, one, () => lookUpOne(tracking, one, { record }))
  for (const one of due) void begin(tracking, one, () => submitAgain(tracking, one, ledger))
}

/** @param known what a lookup of one of its hashes has just shown */
async function lookUpOne(tracking: Tracking, recorded: RecordedTransfer, known?: Probe): Promise<void> {
  const { lookingUp } = tracking
  const { id } = recorded.transfer
  lookingUp.add(id)
  const result = await lookUpTransfer(tracking, recorded, known).finally(() => lookingUp.delete(id))
  if (result && 'status' in result) await end(tracking, recorded, result)
  else if (result) await submitAgain(tracking, recorded, result.ledger)
}

/** @param ledger the ledger up to which none of its envelopes was applied */
async function submitAgain(tracking: Tracking, recorded: RecordedTransfer, ledger: number): Promise<void> {
  const { resubmitting } = tracking
  const { id } = recorded.transfer
  if (resubmitting.has(id)) return
  resubmitting.add(id)
  const attempted = await resubmit(tracking, recorded, ledger).finally(() => resubmitting.delete(id))
  await followUp(tracking, recorded, attempted)
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
  const { database, now, archive, tracked, waiters, isForeignNetwork } = tracking
  const { transfer, envelopes } = recorded
  if (!('record' in decision) && (await isForeignNetwork())) return
  const settled = await settle(await database(), transfer.id, { decision, lookedUp: setOf(envelopes), now: now() })
  if (!settled) return
  const { id, status, account } = settled
  const [hash, ledger, code] = [settled.hash, settled.ledger, settled.resultCode].map((value) => value ?? undefined)
  log('info', 'transfer settled', { transfer: id, account, status, hash, ledger, code })
  tracked.delete(id)
  waiters.tellEnded(id, settled)
  if (archive) ingestSoon(archive)
}
