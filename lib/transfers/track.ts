import { setTimeout as pause } from 'node:timers/promises'
import type { Transfer } from '#drizzle/schema/transfers.ts'
import { type ArchiveContext, ingestSoon } from '#lib/archive/ingest.ts'
import { log, openAttempts, withLogFields } from '#lib/observability/log.ts'
import { openAccounts } from '#lib/stellar/account.ts'
import type { Decision } from './decide.ts'
import { lookUpAll, type TrackingContext } from './look-up.ts'
import { openRecency, type Recency } from './recency.ts'
import { type Attempt, isRenewed, refusalOf, resubmit, submitOnce } from './resubmit.ts'
import { type Envelope, findTransfers, type RecordedTransfer, setOf } from './rows.ts'
import { settleDecided } from './settle.ts'

/** Submits recorded envelopes and finds out how their transfers end. Each process has one; it needs no key. */
export interface Tracker extends TrackingContext {
  /** the IDs of the transfers that this process recorded or was asked about, in the order of their next lookup */
  tracked: ReadonlySet<string>
  /**
   * Submits an envelope that was just recorded, or tracks one that any process recorded before, and waits up to `waitMs`
   * for the outcome of its transfer. A transfer is tracked until it is settled, even if no caller waits for it.
   */
  submit(recorded: RecordedTransfer, options: SubmitOptions): Promise<Outcome>
  /** Waits up to `waitMs` for the end of a transfer, by any of its envelopes. */
  waitFor(transfer: Transfer, waitMs: number): Promise<Outcome>
  /** Looks up transfers in the next round, even if a process has done so in this ledger, and waits up to `waitMs`. */
  lookUp(ids: readonly string[], waitMs: number): Promise<void>
  /** Tracks transfers that this process doesn't track yet, and waits up to `waitMs` for their ends. */
  refresh(ids: readonly string[], waitMs: number): Promise<void>
  /** Ends the tracking; resolves when the round in progress is over. */
  stop(): Promise<void>
}

type SubmitOptions = { innerHash: string; isNew: boolean; waitMs: number }

/** How a transfer ended for the caller who waited: settled, refused by the network, or still open when time was up. */
export type Outcome =
  | { kind: 'settled'; transfer: Transfer }
  | { kind: 'refused'; resultCode: string }
  | { kind: 'open' }

/** @param options.archive gets the events of settled transfers */
export function openTracker(
  options: Pick<TrackingContext, 'network' | 'database' | 'now'> & { archive?: ArchiveContext | undefined },
): Tracker {
  const { network, database, now, archive } = options
  const recency = openRecency(() => now().getTime())
  const context: TrackingContext = { network, database, now, recency, readAccount: openAccounts(network) }
  const attempt = openAttempts((transfer, failure) => log('error', 'submission', { transfer, failure }))
  const waiters = openWaiters(recency)
  const tracked = new Set<string>()
  /** the transfers that the next round always looks up, and the events their callers wait for */
  let requested = new Map<string, PromiseWithResolvers<void>>()
  /** how many new envelopes of a transfer are being submitted: no round looks it up in the meantime */
  const submitting = new Map<string, number>()
  let running: Promise<void> | undefined
  let wake = new AbortController() // ends the pause until the next ledger is due
  let isStopped = false

  async function submit(recorded: RecordedTransfer, { innerHash, isNew, waitMs }: SubmitOptions): Promise<Outcome> {
    const { transfer, envelopes } = recorded
    if (transfer.status !== 'open') return { kind: 'settled', transfer }
    const envelope = envelopes.find((one) => one.innerHash === innerHash)
    const ending = waiters.wait(transfer.id, { envelope, waitMs })
    // An envelope that the network refused is submitted again by the next round: once per ledger, not per request.
    if (envelope && isNew) void attempt(transfer.id, () => submitNew(recorded, envelope))
    track(transfer.id)
    return await ending
  }

  async function submitNew(recorded: RecordedTransfer, envelope: Envelope): Promise<void> {
    const { id, recordedLedger } = recorded.transfer
    submitting.set(id, (submitting.get(id) ?? 0) + 1)
    try {
      await end(await submitOnce(context, recorded, envelope, Math.max(recency.latestLedger(), recordedLedger)))
    } finally {
      const others = (submitting.get(id) ?? 1) - 1
      if (others > 0) submitting.set(id, others)
      else submitting.delete(id)
    }
  }

  async function waitFor(transfer: Transfer, waitMs: number): Promise<Outcome> {
    if (transfer.status !== 'open') return { kind: 'settled', transfer }
    const ending = waiters.wait(transfer.id, { waitMs })
    track(transfer.id)
    return await ending
  }

  async function lookUpNow(ids: readonly string[], waitMs: number): Promise<void> {
    const rounds = ids.map((id) => {
      const round = requested.get(id) ?? Promise.withResolvers<void>()
      requested.set(id, round)
      track(id)
      return round.promise
    })
    wake.abort()
    await Promise.race([Promise.all(rounds), pause(waitMs, undefined, { ref: false })])
  }

  async function refresh(ids: readonly string[], waitMs: number): Promise<void> {
    const untracked = ids.filter((id) => !tracked.has(id))
    const endings = untracked.map((id) => waiters.wait(id, { waitMs }))
    untracked.forEach(track)
    if (endings.length > 0) wake.abort()
    await Promise.all(endings)
  }

  function track(id: string): void {
    tracked.add(id)
    running ??= withLogFields({}, run)
  }

  /** One round per closed ledger while anything is tracked, outside any request. No `await` follows the last check. */
  async function run(): Promise<void> {
    // The caller has yet to begin its wait.
    await Promise.resolve()
    while (tracked.size > 0 && !isStopped) {
      wake = new AbortController()
      await attempt('all', runRound)
      if (tracked.size === 0 || isStopped) break
      await pause(network.pollMs)
      await pause(recency.dueIn(), undefined, { signal: wake.signal }).catch(() => undefined)
    }
    running = undefined
  }

  async function runRound(): Promise<void> {
    const requests = requested
    requested = new Map()
    try {
      // Transfers that are tracked while the rows are read wait for the next round.
      const ids = [...tracked]
      const rows = new Map((await findTransfers(await database(), ids)).map((row) => [row.transfer.id, row]))
      const open: RecordedTransfer[] = []
      for (const id of ids) {
        const row = rows.get(id)
        if (submitting.has(id)) continue
        if (row?.transfer.status === 'open') open.push(row)
        else forget(id, row?.transfer)
      }
      for (const recorded of open) waiters.tellRefused(recorded)
      const later = await lookUpAll(context, open, {
        isRequested: (id) => requests.has(id),
        putLast: (id) => void (tracked.delete(id) && tracked.add(id)),
        attempt,
        settle,
        resubmit: async (recorded, ledger) => await end(await resubmit(context, recorded, ledger)),
      })
      for (const { transfer } of later) postpone(transfer.id, requests)
    } finally {
      for (const { resolve } of requests.values()) resolve()
    }
  }

  /** Leaves a request to the next round. */
  function postpone(id: string, requests: typeof requested): void {
    const request = requests.get(id)
    if (!request || !requests.delete(id)) return
    const newer = requested.get(id)
    if (newer) void newer.promise.then(request.resolve)
    else requested.set(id, request)
  }

  async function end(attempted: Attempt): Promise<void> {
    if (attempted.kind === 'decided') await settle(attempted.recorded, attempted.decision)
    else if (attempted.kind !== 'submitted') {
      waiters.tellRefused(attempted.recorded, { isStuck: attempted.kind === 'stuck' })
    }
  }

  /** Does nothing if an envelope joined the transfer in the meantime: the next round looks that up, too. */
  async function settle({ transfer, envelopes }: RecordedTransfer, decision: Decision): Promise<void> {
    const lookedUp = setOf(envelopes)
    const settled = await settleDecided(await database(), transfer.id, { decision, lookedUp, now: now() })
    if (!settled) return
    const [hash, ledger, code] = [settled.hash, settled.ledger, settled.resultCode].map((value) => value ?? undefined)
    const { id, status, account } = settled
    log('info', 'transfer settled', { transfer: id, account, status, hash, ledger, code })
    forget(id, settled)
    if (archive) ingestSoon(archive)
  }

  function forget(id: string, settled: Transfer | undefined): void {
    tracked.delete(id)
    if (settled) waiters.tellSettled(settled)
  }

  const stop = async () => {
    isStopped = true
    wake.abort()
    await running
  }

  return { ...context, tracked, submit, waitFor, lookUp: lookUpNow, refresh, stop }
}

interface Waiter {
  /** the envelope whose refusal ends the wait, as it was when the wait began; otherwise only the transfer's end does */
  envelope: Envelope | undefined
  finish(outcome: Outcome): void
}

/** The requests of this process that wait for transfers. They are notified of the stored result. */
function openWaiters(recency: Recency) {
  const waiting = new Map<string, Set<Waiter>>()

  function wait(
    id: string,
    { envelope, waitMs }: { envelope?: Envelope | undefined; waitMs: number },
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiter.finish({ kind: 'open' }), waitMs)
      const ofTransfer = waiting.get(id) ?? new Set()
      const waiter: Waiter = {
        envelope,
        finish: (outcome) => {
          clearTimeout(timer)
          ofTransfer.delete(waiter)
          if (ofTransfer.size === 0) waiting.delete(id)
          resolve(outcome)
        },
      }
      waiting.set(id, ofTransfer.add(waiter))
    })
  }

  function tellSettled(transfer: Transfer): void {
    for (const { finish } of [...(waiting.get(transfer.id) ?? [])]) finish({ kind: 'settled', transfer })
  }

  /**
   * Notifies the requests that wait for an envelope that the network rejected it. While a rival may decide the transfer,
   * a rejection doesn't end the wait in which it arrives. A rejection from before the wait is used only if the envelope
   * isn't resubmitted: another one is in its place, or the transfer `isStuck`, so that none is for now.
   */
  function tellRefused({ transfer, envelopes }: RecordedTransfer, { isStuck } = { isStuck: false }): void {
    for (const { envelope, finish } of [...(waiting.get(transfer.id) ?? [])]) {
      const refusal = envelope && refusalOf(envelope.innerHash, envelopes, recency, isStuck)
      if (!refusal || isRenewed(envelope, envelopes)) continue
      const { hasRival, isIdle } = refusal
      const isNews = envelope.resultCode === null || envelope.sentLedger !== refusal.sentLedger
      if (hasRival ? !isNews : isNews || isIdle || isStuck) finish({ kind: 'refused', resultCode: refusal.resultCode })
    }
  }

  return { wait, tellSettled, tellRefused }
}
