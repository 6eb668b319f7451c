import { setTimeout as pause } from 'node:timers/promises'
import { log, openAttempts, withLogFields } from '#lib/observability/log.ts'
import { openAccounts } from '#lib/stellar/account.ts'
import type { TrackingContext } from './resubmit.ts'
import { begin, runRound, submitNew, type Tracking } from './round.ts'
import type { RecordedTransfer } from './rows.ts'
import { type Outcome, openWaiters, type WaitOptions } from './waiters.ts'

/** Submits recorded envelopes and finds out how their transfers end. Each process has one; it needs no key. */
export interface Tracker extends TrackingContext {
  /** the IDs of the transfers that this process recorded or was asked about */
  tracked: Pick<ReadonlyMap<string, unknown>, 'has' | 'size'>
  /** Submits an envelope that was just recorded, or tracks an earlier one, and waits for the outcome of its transfer. */
  submit(recorded: RecordedTransfer, options: SubmitOptions): Promise<Outcome>
  /** Tracks transfers until they are settled, even if no caller waits for them, and waits for their outcomes. */
  track(ids: readonly string[], options: TrackOptions): Promise<Outcome[]>
  /** Ends the tracking; resolves when the round, the look-ups and the submissions in progress are over. */
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

export function openTracker(
  options: Pick<TrackingContext, 'network' | 'database' | 'now'> &
    Partial<Pick<Tracking, 'isForeignNetwork' | 'archive'>>,
): Tracker {
  const { archive, isForeignNetwork = async () => false, ...given } = options
  const { network } = options
  const { view } = network
  const context: TrackingContext = { ...given, view, readAccount: openAccounts(network), isForeignNetwork }
  const tracking: Tracking = {
    ...context,
    archive,
    attempt: openAttempts((transfer, failure) => log('error', 'submission', { transfer, failure })),
    waiters: openWaiters(view),
    tracked: new Map(),
    requests: [],
    lookingUp: new Set(),
    resubmitting: new Set(),
    inFlight: new Set(),
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
    if (envelope && isNew) void begin(tracking, recorded, () => submitNew(tracking, recorded, envelope))
    const [outcome = { kind: 'open' }] = await track([transfer.id], { envelope, waitMs, isNew })
    return outcome
  }

  async function track(
    ids: readonly string[],
    { lookUp, isNew = false, ...wait }: TrackOptions & { isNew?: boolean },
  ): Promise<Outcome[]> {
    const chosen = lookUp === 'untracked' ? ids.filter((id) => !tracked.has(id)) : ids
    if (chosen.length === 0) return []
    const added = chosen.map((id) => waiters.add(id, wait))
    for (const id of chosen) tracked.set(id, tracked.get(id) ?? tracking.rounds)
    if (lookUp === 'requested') tracking.requests.push(...added)
    if (lookUp) wake.abort()
    running ??= withLogFields({}, () => run(isNew))
    return await Promise.all(added.map(({ outcome }) => outcome))
  }

  /**
   * One round per closed ledger while anything is tracked, outside any request. No `await` follows the last check.
   * @param isNew whether all there is was recorded just now: no ledger can include it before the next one
   */
  async function run(isNew: boolean): Promise<void> {
    // Transfers that are tracked at the same time share the first round.
    await Promise.resolve()
    if (isNew) await rest()
    while (tracked.size > 0 && !isStopped) {
      wake = new AbortController()
      await attempt('all', () => runRound(tracking))
      if (tracked.size === 0 || isStopped) break
      await rest()
    }
    running = undefined
  }

  async function rest(): Promise<void> {
    await pause(network.pollMs)
    // The next round serves a request whose transfer was being looked up during this one.
    if (tracking.requests.length > 0) return
    await pause(view.dueIn(), undefined, { signal: wake.signal }).catch(() => undefined)
  }

  const stop = async () => {
    isStopped = true
    wake.abort()
    await running
    await Promise.all(tracking.inFlight)
  }

  return { ...context, tracked, submit, track, stop }
}
