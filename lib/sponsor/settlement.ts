import type { Database } from '#lib/db.ts'
import { lookUp } from '#lib/ledger/look-up.ts'
import type { Network } from '#lib/ledger/network.ts'
import { send } from '#lib/ledger/send.ts'
import { describeFailure, log } from '#lib/log.ts'
import { type LedgerRecord, readRecord } from './ledger-record.ts'
import { lookByHashes, walkLedgers } from './look.ts'
import { type Ending, exclusively, newPending, notify, type Pending, reopen, waitFor } from './pending.ts'
import {
  isOpen,
  markSent,
  rejectTransfer,
  resumeTransfer,
  settleTransfer,
  type TransferRecord,
} from './transfer-record.ts'

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
  const { network, database, now } = given
  const pending = new Map<string, Pending>()
  let latestLedger = 0
  let turn = 0
  let running: Promise<void> | undefined
  let stopped = false

  async function follow(
    record: TransferRecord,
    { isNew, patience }: { isNew: boolean; patience: number },
  ): Promise<Ending> {
    if (!isOpen(record)) return record
    const entry = pending.get(record.innerHash) ?? newPending(record, isNew)
    pending.set(record.innerHash, entry)
    if (entry.rejected) reopen(entry)
    const ending = waitFor(entry, patience)
    if (isNew) void exclusively(entry, () => deliver(entry))
    running ??= run()
    return await ending
  }

  async function lookAfter(records: readonly TransferRecord[]): Promise<void> {
    const unknown = records.filter(({ innerHash }) => !pending.has(innerHash))
    await Promise.all(unknown.map((record) => follow(record, { isNew: false, patience: GLANCE_MS })))
  }

  /** Goes on while anything is pending. It must say in the same breath that it ends and that nothing is. */
  async function run(): Promise<void> {
    while (pending.size > 0 && !stopped) {
      await lookAtAll().catch((error: unknown) => {
        log('error', 'settlement', { pending: pending.size, failure: describeFailure(error) })
      })
      if (pending.size > 0) await new Promise((resolve) => setTimeout(resolve, network.pollMs))
    }
    running = undefined
  }

  /** One look: asks one transfer whether a ledger has closed, each time another, and only then after all of them. */
  async function lookAtAll(): Promise<void> {
    const idle = [...pending.values()].filter((entry) => !entry.busy)
    turn += 1
    const probe = idle[turn % idle.length]
    if (!probe) return
    const { outerHash } = probe.record
    const answer = await lookUp(network, outerHash)
    latestLedger = Math.max(latestLedger, answer.latestLedger)
    if (answer.status !== 'NOT_FOUND') {
      await exclusively(probe, () =>
        settle(probe, readRecord(answer, { ...probe.record, hash: outerHash, ours: true })),
      )
    }
    const due = idle.filter((entry) => pending.has(entry.record.innerHash) && entry.lookedAt < latestLedger)
    const recent = due.filter((entry) => entry.lookedAt >= 0)
    const walked = recent.length > FEW ? await walk(recent) : new Set<Pending>()
    await Promise.all(
      due.filter((entry) => !walked.has(entry)).map((entry) => exclusively(entry, () => examine(entry))),
    )
  }

  /** Answers with those that need no closer look: settled, or not in any ledger yet and not past their time. */
  async function walk(entries: Pending[]): Promise<Set<Pending>> {
    const start = Math.min(...entries.map((entry) => entry.lookedAt)) + 1
    const {
      records,
      latestLedger: latest,
      latestCloseTime,
    } = await walkLedgers(
      network,
      entries.map((entry) => entry.record),
      start,
    )
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

  async function examine(entry: Pending): Promise<void> {
    const look = await lookByHashes(network, entry.record)
    if (look.found) return await settle(entry, look.found)
    if (look.dead) return await settle(entry, null)
    await missing(entry, look.latestLedger)
  }

  /** Not in the ledgers up to `ledger`: sent again unchanged, once per ledger, while the network may still take it. */
  async function missing(entry: Pending, ledger: number): Promise<void> {
    entry.lookedAt = ledger
    if (entry.contestedUntil !== undefined && ledger >= entry.contestedUntil) return await reject(entry)
    if (!entry.rejected && entry.contestedUntil === undefined && entry.sentAt < ledger) await deliver(entry)
  }

  async function deliver(entry: Pending): Promise<void> {
    const first = entry.record.status === 'held' && entry.sentAt < 0
    const { innerHash, payout } = entry.record
    if (payout && entry.record.resultCode) await resumeTransfer(await database(), innerHash, now())
    const sent = await send(network, entry.record.envelope)
    entry.sentAt = Math.max(latestLedger, entry.lookedAt, sent.latestLedger ?? 0)
    const resultCode = sent.kind === 'error' ? sent.resultCode : null
    if (first || resultCode) {
      entry.record = { ...entry.record, status: 'sent', resultCode }
      await markSent(await database(), innerHash, { at: now(), resultCode })
    }
    if (sent.kind === 'error') await refused(entry, { contested: sent.contested || !first })
  }

  /**
   * The network refuses the envelope. If the code can mean that the same transaction is there already, be it the
   * client's own copy or what we sent before, only ledgers to come can tell.
   */
  async function refused(entry: Pending, { contested }: { contested: boolean }): Promise<void> {
    const look = await lookByHashes(network, entry.record)
    if (look.found) return await settle(entry, look.found)
    if (contested) entry.contestedUntil = look.latestLedger + 2
    else await reject(entry)
  }

  async function reject(entry: Pending): Promise<void> {
    if (entry.record.payout) await rejectTransfer(await database(), entry.record.innerHash, now())
    entry.contestedUntil = undefined
    entry.rejected = true
    log('info', 'transfer rejected', { hash: entry.record.innerHash, code: entry.record.resultCode ?? undefined })
    notify(entry, 'rejected')
  }

  async function settle(entry: Pending, record: LedgerRecord | null): Promise<void> {
    const settled = await settleTransfer(await database(), entry.record.innerHash, record, now())
    pending.delete(entry.record.innerHash)
    log('info', 'transfer settled', {
      hash: settled.innerHash,
      outerHash: settled.outerHash,
      status: settled.status,
      ledger: settled.ledger ?? undefined,
      code: settled.resultCode ?? undefined,
    })
    notify(entry, settled)
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
