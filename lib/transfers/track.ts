import { setTimeout as pause } from 'node:timers/promises'
import type { Transfer } from '#drizzle/schema/transfers.ts'
import { type ArchiveContext, ingestSoon } from '#lib/archive/ingest.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import { openAccounts, type ReadAccount } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { openAttempts } from './attempts.ts'
import type { Decision, LedgerRecord } from './decide.ts'
import { walkLedgers } from './ledger-pages.ts'
import { isAlone, lookUpTransfer, lookUpWithAccount, readRecord } from './look-up.ts'
import { openRecency, type Recency } from './recency.ts'
import { type Attempt, resubmit, submitOnce } from './resubmit.ts'
import { type Envelope, findTransfers, noteLookedUp, type RecordedTransfer, setOf } from './rows.ts'
import { settleDecided } from './settle.ts'
import { type Outcome, openWaiters } from './waiters.ts'

/** Submits recorded envelopes and finds out how their transfers end. Each process has one; it needs no key. */
export interface Tracker {
  network: Network
  /** opens the database for each use, so that an outage is only waited through */
  database: () => Promise<Database>
  /** reads accounts; combines concurrent reads into one call */
  readAccount: ReadAccount
  recency: Recency
  /**
   * Submits an envelope that was just recorded, or tracks one that any process recorded before, and waits up to `waitMs`
   * for the outcome of its transfer. A transfer is tracked until it is settled, even if no caller waits for it.
   */
  submit(recorded: RecordedTransfer, options: { innerHash: string; isNew: boolean; waitMs: number }): Promise<Outcome>
  /** Waits up to `waitMs` for the end of a transfer, by any of its envelopes. */
  waitFor(transfer: Transfer, waitMs: number): Promise<Outcome>
  /** Looks transfers up in the next round, even if a process has done so in this ledger, and waits up to `waitMs`. */
  lookUp(ids: readonly string[], waitMs: number): Promise<void>
  /** Tracks transfers that this process doesn't track yet, and waits up to `waitMs` for their ends. */
  refresh(ids: readonly string[], waitMs: number): Promise<void>
  /** Ends the tracking; resolves when the round in progress is over. */
  stop(): Promise<void>
}

/** Up to this many are looked up one by one; more are found by walking the ledgers. */
const FEW = 5

/** A walk begins at most LONGEST_WALK ledgers back. One round looks up at most MOST transfers one by one. */
const LONGEST_WALK = 20
const MOST = 25

export function openTracker(context: {
  network: Network
  database: () => Promise<Database>
  now: () => Date
  /** gets the events of settled transfers */
  archive?: ArchiveContext | undefined
}): Tracker {
  const { network, database, now } = context
  const readAccount = openAccounts(network)
  const recency = openRecency(() => now().getTime())
  const parts = { ...context, readAccount, recency }
  const attempt = openAttempts()
  const waiters = openWaiters(recency)
  /** IDs of the transfers that this process recorded or was asked about, in the order of their next lookup */
  const tracked = new Set<string>()
  /** the transfers that the next round always looks up, and the events their callers wait for */
  let requested = new Map<string, PromiseWithResolvers<void>>()
  /** the transfers of which a new envelope is being submitted: no round looks them up meanwhile */
  const submitting = new Set<string>()
  let running: Promise<void> | undefined
  let isStopped = false

  async function submit(
    recorded: RecordedTransfer,
    { innerHash, isNew, waitMs }: { innerHash: string; isNew: boolean; waitMs: number },
  ): Promise<Outcome> {
    const { transfer, envelopes } = recorded
    if (transfer.status !== 'open') return { kind: 'settled', transfer }
    const envelope = envelopes.find((one) => one.innerHash === innerHash)
    const ending = waiters.wait(transfer.id, { envelope, waitMs })
    const ledger = Math.max(recency.latestLedger(), transfer.recordedLedger)
    // An envelope that the network refused is submitted again by the next round: once per ledger, not per request.
    if (envelope && isNew) void attempt(transfer.id, () => submitNew(recorded, envelope, ledger))
    track(transfer.id)
    return await ending
  }

  async function submitNew(recorded: RecordedTransfer, envelope: Envelope, ledger: number): Promise<void> {
    const { id } = recorded.transfer
    submitting.add(id)
    try {
      await end(await submitOnce(parts, recorded, envelope, ledger))
    } finally {
      submitting.delete(id)
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
    await Promise.race([Promise.all(rounds), pause(waitMs, undefined, { ref: false })])
  }

  async function refresh(ids: readonly string[], waitMs: number): Promise<void> {
    const untracked = ids.filter((id) => !tracked.has(id))
    const endings = untracked.map((id) => waiters.wait(id, { waitMs }))
    untracked.forEach(track)
    await Promise.all(endings)
  }

  function track(id: string): void {
    tracked.add(id)
    running ??= run()
  }

  /** One round per closed ledger while anything is tracked. There is no `await` between the last check and the end. */
  async function run(): Promise<void> {
    // The caller has yet to begin its wait.
    await Promise.resolve()
    while (tracked.size > 0 && !isStopped) {
      await attempt('all', runRound)
      if (tracked.size > 0 && !isStopped) await pause(network.pollMs)
    }
    running = undefined
  }

  async function runRound(): Promise<void> {
    const asked = requested
    requested = new Map()
    try {
      // What is tracked while the rows are read is for the next round.
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
      await lookUpAll(open, (id) => asked.has(id))
    } finally {
      for (const { resolve } of asked.values()) resolve()
    }
  }

  /** Looks up one transfer to learn whether a ledger has closed, a different one each time, and only then all of them. */
  async function lookUpAll(open: RecordedTransfer[], isRequested: (id: string) => boolean): Promise<void> {
    const [probe] = open
    const [envelope] = probe?.envelopes ?? []
    if (!probe || !envelope) return
    putLast(probe)
    const { innerHash, outerHash } = envelope
    const answer = await lookUp(network, outerHash ?? innerHash)
    recency.observe(answer.latestLedger, answer.latestLedgerCloseTime)
    if (answer.status !== 'NOT_FOUND') {
      const expected = { innerHash, sponsor: probe.transfer.sponsor, passphrase: network.passphrase }
      await attempt(probe.transfer.id, () => settleFound(probe, readRecord(answer, expected)))
    }
    const latest = recency.latestLedger()
    const lookedUp = ({ transfer }: RecordedTransfer) => recency.hint(transfer.lookedUpLedger) ?? -1
    const due = open.filter((one) => {
      const { id } = one.transfer
      return tracked.has(id) && (isRequested(id) || lookedUp(one) < latest)
    })
    const recent = due.filter((one) => lookedUp(one) >= latest - LONGEST_WALK && lookedUp(one) < latest)
    const walked =
      recent.length > FEW ? await walk(recent, Math.min(...recent.map(lookedUp)) + 1) : new Set<RecordedTransfer>()
    const rest = due.filter((one) => !walked.has(one)).slice(0, MOST)
    rest.forEach(putLast)
    await Promise.all(rest.map((one) => attempt(one.transfer.id, () => lookUpOne(one))))
  }

  /** Moves a transfer to the end, so that transfers whose lookups fail don't block the others. */
  function putLast({ transfer: { id } }: RecordedTransfer): void {
    if (tracked.delete(id)) tracked.add(id)
  }

  /** Finds transfers in the pages of the ledgers since `start`. Resolves to those that need no separate lookup. */
  async function walk(recent: RecordedTransfer[], start: number): Promise<Set<RecordedTransfer>> {
    const done = new Set<RecordedTransfer>()
    // With an RPC that has no pages, or whose nodes lag, all of them are looked up one by one.
    await attempt('pages', async () => {
      const { records, absent, latestLedger } = await walkLedgers(network, recent, start)
      await noteLookedUp(await database(), absent, latestLedger)
      for (const one of [...records.keys(), ...absent]) done.add(one)
      await Promise.all([
        ...[...records].map(([one, record]) => attempt(one.transfer.id, () => settleFound(one, record))),
        ...absent.map((one) => attempt(one.transfer.id, async () => end(await resubmit(parts, one, latestLedger)))),
      ])
    })
    return done
  }

  async function settleFound(recorded: RecordedTransfer, record: LedgerRecord): Promise<void> {
    if (!record.consumed || !isAlone(recorded, record)) return await lookUpOne(recorded)
    const { succeeded, feeCharged } = record
    await settle(recorded, { status: succeeded ? 'succeeded' : 'failed', record, feeCharged })
  }

  async function lookUpOne(recorded: RecordedTransfer): Promise<void> {
    const found = await lookUpTransfer(parts, recorded)
    const decision = 'status' in found ? found : found.isOver ? await lookUpWithAccount(parts, recorded) : undefined
    if (decision) return await settle(recorded, decision)
    if ('status' in found || found.isOver) return
    await noteLookedUp(await database(), [recorded], found.ledger)
    await end(await resubmit(parts, recorded, found.ledger))
  }

  async function end(attempted: Attempt): Promise<void> {
    if (attempted.kind === 'decided') await settle(attempted.recorded, attempted.decision)
    else if (attempted.kind !== 'submitted') {
      waiters.tellRefused(attempted.recorded, { isStuck: attempted.kind === 'stuck' })
    }
  }

  /** Does nothing if an envelope joined the transfer meanwhile: the next round looks that up, too. */
  async function settle({ transfer, envelopes }: RecordedTransfer, decision: Decision): Promise<void> {
    const lookedUp = setOf(envelopes)
    const settled = await settleDecided(await database(), transfer.id, { decision, lookedUp, now: now() })
    if (!settled) return
    const { id, status, account } = settled
    const [hash, ledger, code] = [settled.hash, settled.ledger, settled.resultCode].map((value) => value ?? undefined)
    log('info', 'transfer settled', { transfer: id, account, status, hash, ledger, code })
    forget(id, settled)
    if (context.archive) ingestSoon(context.archive)
  }

  function forget(id: string, settled: Transfer | undefined): void {
    tracked.delete(id)
    if (settled) waiters.tellSettled(settled)
  }

  const stop = async () => {
    isStopped = true
    await running
  }

  return { network, database, readAccount, recency, submit, waitFor, lookUp: lookUpNow, refresh, stop }
}
