import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { lookUp } from '#lib/stellar/look-up.ts'
import type { Network } from '#lib/stellar/network.ts'
import { readRecord } from './ledger-record.ts'
import { walkLedgers } from './look.ts'
import { type Ending, exclusively, newPending, type Pending, reopen, waitFor } from './pending.ts'
import { openPursuit } from './pursuit.ts'
import { isOpen, type TransferRecord } from './transfer-record.ts'

/** Finds out what becomes of sponsored transfers. One per process. */
export interface Settlement {
  /**
   * Sends a transfer that was just recorded, or takes up one that anybody recorded before, and waits at most `patience`
   * milliseconds for its end. The answer is the settled row; `rejected` when the network will not have it; `open`
   * when patience ran out. What nobody waits for any more is still settled, here or by whoever looks next.
   */
  follow(record: TransferRecord, options: { isNew: boolean; patience: number }): Promise<Ending>
  /**
   * Takes up what is not being followed here already: looked at now, within a short time, and then once per ledger. What
   * the network has refused is left alone.
   */
  lookAfter(records: readonly TransferRecord[]): Promise<void>
  /** Stops looking, for a process that ends; resolves when the look under way is over. */
  stop(): Promise<void>
}

/** Up to this many are looked up one by one; more are found by walking the ledgers. */
const FEW = 10

/** Every so many ledgers a transfer is looked up by its hashes though it is walked for: a stranger may have bumped it. */
const CLOSER_LOOK = 5

/** A walk begins at most this many ledgers back, and at most so many are looked up one by one at a time. */
const LONGEST_WALK = 20
const MOST = 25

/** How long somebody who only looks waits for what a transfer has come to. */
const GLANCE_MS = 500

/**
 * @param database opens the database anew at each use, so that an outage is only waited through
 */
export function openSettlement(given: {
  network: Network
  database: () => Promise<Database>
  now: () => Date
}): Settlement {
  const { network } = given
  const pending = new Map<string, Pending>()
  let latestLedger = 0
  const drop = (entry: Pending) => void pending.delete(entry.record.innerHash)
  const { deliver, examine, missing, settle } = openPursuit({ ...given, drop, knownLedger: () => latestLedger })
  let turn = 0
  let failure: string | undefined
  let running: Promise<void> | undefined
  let stopped = false

  async function follow(
    record: TransferRecord,
    { isNew, patience }: { isNew: boolean; patience: number },
  ): Promise<Ending> {
    if (!isOpen(record)) return record
    const entry = take(record, isNew)
    if (entry.rejected) reopen(entry)
    const ending = waitFor(entry, patience)
    if (isNew) void exclusively(entry, () => deliver(entry))
    running ??= run()
    return await ending
  }

  async function lookAfter(records: readonly TransferRecord[]): Promise<void> {
    const unknown = records.filter((record) => isOpen(record) && !pending.has(record.innerHash))
    const endings = unknown.map((record) => waitFor(take(record, false), GLANCE_MS))
    if (endings.length > 0) running ??= run()
    await Promise.all(endings)
  }

  function take(record: TransferRecord, isNew: boolean): Pending {
    const entry = pending.get(record.innerHash) ?? newPending(record, isNew)
    pending.set(record.innerHash, entry)
    return entry
  }

  /** Goes on while anything is pending. It must say in the same breath that it ends and that nothing is. */
  async function run(): Promise<void> {
    while (pending.size > 0 && !stopped) {
      await lookAtAll().then(() => note(undefined), note)
      if (pending.size > 0) await new Promise((resolve) => setTimeout(resolve, network.pollMs))
    }
    running = undefined
  }

  /** An outage is one line of the log, and not one for each look. */
  function note(error: unknown): void {
    const found = error === undefined ? undefined : describeFailure(error)
    if (found !== undefined && found !== failure) log('error', 'settlement', { pending: pending.size, failure: found })
    failure = found
  }

  /** One look: asks one transfer whether a ledger has closed, each time another, and only then after all of them. */
  async function lookAtAll(): Promise<void> {
    await tellDatabase()
    const idle = [...pending.values()].filter((entry) => !entry.busy && entry.outcome === undefined)
    turn += 1
    const probe = idle[turn % idle.length]
    if (!probe) return
    const { outerHash } = probe.record
    const answer = await lookUp(network, outerHash)
    latestLedger = answer.latestLedger
    if (answer.status !== 'NOT_FOUND') {
      await exclusively(probe, () =>
        settle(probe, readRecord(answer, { ...probe.record, hash: outerHash, ours: true })),
      )
    }
    const due = idle.filter((entry) => pending.has(entry.record.innerHash) && entry.lookedAt < latestLedger)
    const walkable = due.filter(isWalkable)
    const walked = walkable.length > FEW ? await tryToWalk(walkable) : new Set<Pending>()
    const closer = due.filter((entry) => !walked.has(entry)).sort((one, other) => one.lookedAt - other.lookedAt)
    await Promise.all(closer.slice(0, MOST).map((entry) => exclusively(entry, () => examine(entry))))
  }

  /** What has ended on the ledger while the database was out of reach; the first failure says that it still is. */
  async function tellDatabase(): Promise<void> {
    for (const entry of [...pending.values()]) {
      const { outcome } = entry
      if (outcome === undefined || entry.busy) continue
      await exclusively(entry, () => settle(entry, outcome))
      if (entry.outcome !== undefined && pending.has(entry.record.innerHash)) return
    }
  }

  function isWalkable(entry: Pending): boolean {
    const age = latestLedger - entry.record.sinceLedger
    return entry.lookedAt >= latestLedger - LONGEST_WALK && age % CLOSER_LOOK !== 0
  }

  /** An RPC that gives no pages, or smaller ones, or is behind: then they are looked up by their hashes. */
  async function tryToWalk(entries: Pending[]): Promise<Set<Pending>> {
    try {
      return await walk(entries)
    } catch (error) {
      log('error', 'settlement', { pending: pending.size, failure: describeFailure(error) })
      return new Set()
    }
  }

  /** Answers with those that need no closer look: settled, or not in any ledger yet and not past their time. */
  async function walk(entries: Pending[]): Promise<Set<Pending>> {
    const start = Math.min(...entries.map((entry) => entry.lookedAt)) + 1
    const sought = entries.map((entry) => entry.record)
    const { records, latestLedger: latest, latestCloseTime } = await walkLedgers(network, sought, start)
    const done = new Set<Pending>()
    await Promise.all(
      entries.map(async (entry) => {
        const record = records.get(entry.record.innerHash)
        if (record === null || (!record && latestCloseTime > entry.record.maxTime)) return
        done.add(entry)
        await exclusively(entry, () => (record ? settle(entry, record) : missing(entry, latest)))
      }),
    )
    return done
  }

  return {
    follow,
    lookAfter,
    stop: async () => {
      stopped = true
      await running
    },
  }
}
