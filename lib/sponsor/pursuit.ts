import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import type { Network } from '#lib/stellar/network.ts'
import { send } from '#lib/stellar/send.ts'
import { readSequence } from '#lib/stellar/sequence.ts'
import { sequenceOf } from './fee-bump.ts'
import type { LedgerRecord } from './ledger-record.ts'
import { lookByHashes } from './look.ts'
import { notify, type Pending } from './pending.ts'
import { markSent, rejectTransfer, resumeTransfer, settleTransfer } from './transfer-record.ts'

/** What is done about one transfer whose outcome is open. Each of these throws when RPC or database cannot be reached. */
export interface Pursuit {
  /** Gives the network the envelope. */
  deliver(entry: Pending): Promise<void>
  /** Looks it up by its hashes, and draws the conclusion. */
  examine(entry: Pending): Promise<void>
  /** Draws the conclusion from its not standing in any ledger up to `ledger`. */
  missing(entry: Pending, ledger: number): Promise<void>
  /** Writes down what it has come to on the ledger, null for death, and tells who waits. */
  settle(entry: Pending, record: LedgerRecord | null): Promise<void>
}

/**
 * @param drop ends the pursuit of one
 * @param knownLedger the latest ledger that this process knows of
 */
export function openPursuit(given: {
  network: Network
  database: () => Promise<Database>
  now: () => Date
  drop: (entry: Pending) => void
  knownLedger: () => number
}): Pursuit {
  const { network, database, now, drop, knownLedger } = given

  async function examine(entry: Pending): Promise<void> {
    const look = await lookByHashes(network, entry.record)
    if (look.found) return await settle(entry, look.found)
    if (look.dead) return await settle(entry, null)
    if (look.expired) return await decideWithoutHistory(entry, look.latestLedger)
    await missing(entry, look.latestLedger)
  }

  /** Not in the ledgers up to `ledger`: sent again unchanged, once per ledger, while the network may still take it. */
  async function missing(entry: Pending, ledger: number): Promise<void> {
    entry.lookedAt = ledger
    if (entry.rejected) return
    if (entry.contestedUntil === undefined) {
      if (entry.sentAt < ledger) await deliver(entry)
    } else if (ledger >= entry.contestedUntil) await confirmRefusal(entry)
  }

  async function deliver(entry: Pending): Promise<void> {
    const isFirst = entry.isNew && entry.sentAt < 0
    const { innerHash, payout, resultCode: refusedWith } = entry.record
    if (payout && refusedWith) await resumeTransfer(await database(), innerHash, now())
    const sent = await send(network, entry.record.envelope)
    entry.sentAt = Math.max(knownLedger(), entry.lookedAt)
    const resultCode = sent.kind === 'error' ? sent.resultCode : null
    if (entry.record.status === 'held' || resultCode !== refusedWith) {
      await markSent(await database(), innerHash, { at: now(), resultCode })
      entry.record = { ...entry.record, status: 'sent', resultCode }
    }
    if (sent.kind === 'error') await refused(entry, { contested: sent.contested || !isFirst })
  }

  /**
   * The network refuses the envelope. If the code can mean that the same transaction is there already, be it the
   * client's own copy or what was sent before, only ledgers to come can tell.
   */
  async function refused(entry: Pending, { contested }: { contested: boolean }): Promise<void> {
    const look = await lookByHashes(network, entry.record)
    if (look.found) return await settle(entry, look.found)
    if (contested) entry.contestedUntil = look.latestLedger + 2
    else await reject(entry)
  }

  async function confirmRefusal(entry: Pending): Promise<void> {
    const look = await lookByHashes(network, entry.record)
    if (look.found) await settle(entry, look.found)
    else await reject(entry)
  }

  async function reject(entry: Pending): Promise<void> {
    if (entry.record.payout) await rejectTransfer(await database(), entry.record.innerHash, now())
    entry.contestedUntil = undefined
    entry.rejected = true
    log('info', 'transfer rejected', { hash: entry.record.innerHash, code: entry.record.resultCode ?? undefined })
    notify(entry, 'rejected')
  }

  /**
   * Past its time, and the RPC's history begins after it was recorded: its absence there proves nothing. If the payer's
   * sequence number was never used, it is dead all the same; else nobody can tell, and the row says so by staying open.
   */
  async function decideWithoutHistory(entry: Pending, ledger: number): Promise<void> {
    const { sequence, latestLedger: latest } = await readSequence(network, entry.record.account)
    const unused = sequence === undefined || sequence < sequenceOf(entry.record.envelope)
    if (latest >= ledger && unused) return await settle(entry, null)
    log('error', 'transfer undecidable', { hash: entry.record.innerHash })
    drop(entry)
    notify(entry, 'open')
  }

  async function settle(entry: Pending, record: LedgerRecord | null): Promise<void> {
    entry.outcome = record
    const settled = await settleTransfer(await database(), entry.record.innerHash, record, now())
    drop(entry)
    log('info', 'transfer settled', {
      hash: settled.innerHash,
      outerHash: settled.outerHash,
      status: settled.status,
      ledger: settled.ledger ?? undefined,
      code: settled.resultCode ?? undefined,
    })
    notify(entry, settled)
  }

  return { deliver, examine, missing, settle }
}
