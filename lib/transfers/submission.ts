import { setTimeout as wait } from 'node:timers/promises'
import type { Transfer } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { openAccounts, type ReadAccount } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { maxTimeOf, readRecord, walkLedgers } from './look-up.ts'
import { type Books, findEnvelopes, type RecordedTransfer, setOf } from './rows.ts'
import { newTracked, type Outcome, perform, renew, type Tracked, waitFor } from './tracked.ts'
import { openTracking } from './tracking.ts'

/** Sends recorded envelopes, and finds out how their transfers end. Each process has one; it needs no key. */
export interface Submission {
  network: Network
  /** reads accounts, many in one call where many are asked for at once */
  readAccount: ReadAccount
  books: Books
  /**
   * Sends an envelope that was just recorded, or tracks one that was recorded before, by any process, and waits at most
   * `patience` milliseconds. What no caller waits for any more is still decided, by this process or another.
   */
  submit(recorded: RecordedTransfer, options: { innerHash: string; isNew: boolean; patience: number }): Promise<Outcome>
  /** Waits for the end of a transfer, by any of its envelopes, at most `patience` milliseconds. */
  track(transfer: Transfer, patience: number): Promise<Outcome>
  /** Looks a transfer up now, and decides it if that can be. The caller waits at most `patience` milliseconds. */
  poll(transfer: Transfer, patience: number): Promise<void>
  /** Tracks those that are not tracked here yet, and waits a short time for their ends. */
  refresh(transfers: readonly Transfer[]): Promise<void>
  /** Ends the tracking; resolves when the poll under way is over. */
  stop(): Promise<void>
}

/** Up to this many are looked up one by one; more are found by walking the ledgers. */
const FEW = 5

/** A walk begins at most LONGEST_WALK ledgers back. One poll looks at most MOST transfers up one by one. */
const LONGEST_WALK = 20
const MOST = 25

/** A latest ledger that no answer has named for so long (ms) is forgotten: the RPC was mistaken. */
const FORGET_AFTER_MS = 30_000

/** How long a reader waits for the ends of transfers (ms). */
const REFRESH_MS = 500

/** @param given.database opens the database anew at each use, so that an outage is only waited through */
export function openSubmission(given: {
  network: Network
  database: () => Promise<Database>
  now: () => Date
  books: Books
}): Submission {
  const { network, database, books } = given
  const readAccount = openAccounts(network)
  const tracked = new Map<string, Tracked>()
  /** the latest ledger that is known, when it closed (unix seconds), and when an answer last named it (unix ms) */
  let latest = { ledger: 0, closedAt: 0, namedAt: 0 }
  const isTracked = (entry: Tracked) => tracked.get(entry.transfer.id) === entry
  const drop = (entry: Tracked) => {
    if (isTracked(entry)) tracked.delete(entry.transfer.id)
  }
  /** A step that comes after the end of its transfer is left out. */
  const step = (entry: Tracked, work: () => Promise<void>) =>
    perform(entry, async () => {
      if (isTracked(entry)) await work()
    })
  const tracking = openTracking({ ...given, readAccount, drop, latest: () => latest.ledger })
  let failure: string | undefined
  let running: Promise<void> | undefined
  let stopped = false

  async function submit(
    recorded: RecordedTransfer,
    { innerHash, isNew, patience }: { innerHash: string; isNew: boolean; patience: number },
  ): Promise<Outcome> {
    if (recorded.transfer.status !== 'open') return { kind: 'settled', transfer: recorded.transfer }
    const entry = take(recorded, isNew)
    const envelope = entry.envelopes.find((one) => one.innerHash === innerHash)
    const ending = waitFor(entry, { innerHash, patience })
    // An envelope that the network has refused is sent again by the next poll: once per ledger, not once per request.
    if (envelope && isNew) void step(entry, () => tracking.submit(entry, envelope))
    return await ending
  }

  async function track(transfer: Transfer, patience: number): Promise<Outcome> {
    if (transfer.status !== 'open') return { kind: 'settled', transfer }
    return await waitFor(await takeRow(transfer), { patience })
  }

  async function poll(transfer: Transfer, patience: number): Promise<void> {
    const entry = await takeRow(transfer)
    entry.polling ??= pollOnce(entry)
    await Promise.race([entry.polling, wait(patience, undefined, { ref: false })])
  }

  /** Many requests share one poll, and two polls are at least `pollMs` apart, so that a crowd asks the RPC little. */
  async function pollOnce(entry: Tracked): Promise<void> {
    const pause = entry.polledAt + network.pollMs - performance.now()
    if (pause > 0) await wait(pause, undefined, { ref: false })
    await step(entry, () => tracking.lookUp(entry))
    entry.polledAt = performance.now()
    entry.polling = undefined
  }

  async function refresh(transfers: readonly Transfer[]): Promise<void> {
    const unknown = transfers.filter(({ id, status }) => status === 'open' && !tracked.has(id))
    await Promise.all(unknown.map((transfer) => track(transfer, REFRESH_MS)))
  }

  async function takeRow(transfer: Transfer): Promise<Tracked> {
    const known = tracked.get(transfer.id)
    if (known) return known
    return take({ transfer, envelopes: await findEnvelopes(await database(), transfer.id) }, false)
  }

  function take(recorded: RecordedTransfer, isNew: boolean): Tracked {
    const { id } = recorded.transfer
    const known = tracked.get(id)
    if (known && setOf(known.envelopes) !== setOf(recorded.envelopes)) renew(known, recorded)
    const entry = known ?? newTracked(recorded, isNew)
    tracked.set(id, entry)
    running ??= run()
    return entry
  }

  /** Polls while anything is open. No `await` comes between the last check and `running = undefined`: none slips by. */
  async function run(): Promise<void> {
    // The caller has yet to begin its wait.
    await Promise.resolve()
    while (tracked.size > 0 && !stopped) {
      await pollAll().then(() => note(undefined), note)
      if (tracked.size > 0 && !stopped) await new Promise((resolve) => setTimeout(resolve, network.pollMs))
    }
    running = undefined
  }

  /** An outage is one line of the log, and not one for each poll. */
  function note(error: unknown): void {
    const found = error === undefined ? undefined : describeFailure(error)
    if (found !== undefined && found !== failure) log('error', 'submission', { open: tracked.size, failure: found })
    failure = found
  }

  /** Asks for one transfer whether a ledger has closed, each time another, and only then for all of them. */
  async function pollAll(): Promise<void> {
    await settleDecided()
    const idle = [...tracked.values()].filter((entry) => entry.steps === 0 && entry.decision === undefined)
    const [probe] = idle
    const [envelope] = probe?.envelopes ?? []
    if (!probe || !envelope) return
    const { innerHash, outerHash } = envelope
    putLast(probe)
    const answer = await lookUp(network, outerHash ?? innerHash)
    observe(answer.latestLedger, answer.latestLedgerCloseTime)
    if (answer.status !== 'NOT_FOUND') {
      const expected = { innerHash, sponsor: probe.transfer.sponsor, passphrase: network.passphrase }
      await step(probe, () => tracking.settleFound(probe, readRecord(answer, expected)))
    }
    const due = idle.filter((entry) => isTracked(entry) && entry.steps === 0 && entry.lookedUpTo < latest.ledger)
    const walkable = due.filter(({ lookedUpTo }) => lookedUpTo >= latest.ledger - LONGEST_WALK)
    const walked = walkable.length > FEW ? await tryToWalk(walkable) : new Set<Tracked>()
    const rest = due.filter((entry) => !walked.has(entry)).slice(0, MOST)
    rest.forEach(putLast)
    await Promise.all(rest.map((entry) => step(entry, () => tracking.lookUp(entry))))
  }

  /**
   * Takes note of the latest ledger that an answer names. Ledger number and close time rise together. Where both are lower
   * than the known ones, a node lags and its answer is ignored, unless no answer has named the known ledger for 30 s: then
   * it never was. Where only one is lower, the network has begun anew. In both cases all remembered numbers are void.
   */
  function observe(ledger: number, closedAt: number): void {
    const at = given.now().getTime()
    const known = latest
    const isSame = ledger === known.ledger && closedAt === known.closedAt
    const isNotLater = ledger <= known.ledger && closedAt <= known.closedAt
    if (isNotLater && !isSame && at - known.namedAt < FORGET_AFTER_MS) return
    latest = { ledger, closedAt, namedAt: at }
    if (isSame || (ledger > known.ledger && closedAt >= known.closedAt)) return
    log('info', 'the ledgers begin anew', { latest: known.ledger, ledger })
    for (const entry of tracked.values()) {
      entry.lookedUpTo = -1
      entry.sentAt = -1
      for (const refusal of entry.refusals.values()) refusal.from = 0
    }
  }

  /** Settles the transfers that were decided while the database was out of reach, up to the first that still fails. */
  async function settleDecided(): Promise<void> {
    for (const entry of [...tracked.values()]) {
      if (entry.decision === undefined || entry.steps > 0) continue
      await step(entry, () => tracking.settleDecided(entry))
      if (entry.decision !== undefined) return putLast(entry)
    }
  }

  /** Puts an entry behind the others, so that one that fails each time does not block them. */
  function putLast(entry: Tracked): void {
    if (!isTracked(entry)) return
    tracked.delete(entry.transfer.id)
    tracked.set(entry.transfer.id, entry)
  }

  /** Where the RPC gives no pages, or lags, the set is empty, and the transfers are looked up by their hashes. */
  async function tryToWalk(entries: Tracked[]): Promise<Set<Tracked>> {
    try {
      return await walk(entries)
    } catch (error) {
      log('error', 'submission', { open: tracked.size, failure: describeFailure(error) })
      return new Set()
    }
  }

  /** Answers with those that need no look-up of their own: settled, or in no ledger yet and still valid. */
  async function walk(entries: Tracked[]): Promise<Set<Tracked>> {
    const start = Math.min(...entries.map((entry) => entry.lookedUpTo)) + 1
    const sought = entries.map((entry) => ({ entry, envelopes: entry.envelopes }))
    const { records, latestLedger, closedAt } = await walkLedgers(network, entries, start)
    const done = new Set<Tracked>()
    await Promise.all(
      sought.map(async ({ entry, envelopes }) => {
        const record = records.get(entry.transfer.id)
        if (record === null || (!record && closedAt > maxTimeOf(envelopes))) return
        done.add(entry)
        await step(entry, () =>
          record ? tracking.settleFound(entry, record) : tracking.resubmit(entry, latestLedger, envelopes),
        )
      }),
    )
    return done
  }

  return {
    network,
    readAccount,
    books,
    submit,
    track,
    poll,
    refresh,
    stop: async () => {
      stopped = true
      await running
    },
  }
}
