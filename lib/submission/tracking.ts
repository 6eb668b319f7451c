import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import type { ReadAccount } from '#lib/stellar/accounts.ts'
import type { Network } from '#lib/stellar/network.ts'
import { send } from '#lib/stellar/send.ts'
import { type Decision, decide, type HashAnswer } from './decision.ts'
import type { LedgerRecord } from './ledger-record.ts'
import { hashesOf, lookUpHashes, maxTimeOf } from './look-up.ts'
import { type Books, setOf, settleTransfer } from './settlement.ts'
import { type Tracked, tellRefused, tellSettled } from './tracked.ts'
import { type Envelope, findTransfer, noteSent, type RecordedTransfer } from './transfers.ts'

/** What is done about one open transfer. Each of these throws when RPC or database cannot be reached. */
export interface Tracking {
  /** Gives the network an envelope, again if it had it before. */
  resubmit(entry: Tracked, envelope: Envelope): Promise<void>
  /** Looks it up by its hashes, and draws the conclusion. */
  examine(entry: Tracked): Promise<void>
  /** Draws the conclusion from the fact that no ledger up to `ledger` has `looked`, its envelopes when the look-up began. */
  missing(entry: Tracked, ledger: number, looked: readonly Envelope[]): Promise<void>
  /** Draws the conclusion from a record in the pages of the ledgers. */
  found(entry: Tracked, record: LedgerRecord): Promise<void>
  /** Tells the database what was decided while it was out of reach. */
  settleDecided(entry: Tracked): Promise<void>
}

/** What tracking works with. `drop` ends the tracking of one; `latest` is the latest ledger that the process knows of. */
export interface TrackingTools {
  network: Network
  readAccount: ReadAccount
  database: () => Promise<Database>
  now: () => Date
  books: Books
  drop: (entry: Tracked) => void
  latest: () => number
}

/** A refusal for these can mean that the same transaction, or a rival, is there already: ledgers to come tell (count). */
const CONTESTED_LEDGERS = 2

export function openTracking({ network, readAccount, database, now, books, drop, latest }: TrackingTools): Tracking {
  async function resubmit(entry: Tracked, envelope: Envelope): Promise<void> {
    if (envelope.signed === null) return
    const sent = await send(network, envelope.signed)
    // The refusal of signatures that a request has renewed meanwhile says nothing of the new ones.
    if (!entry.envelopes.some(({ outerHash }) => outerHash === envelope.outerHash)) return
    entry.sentAt = Math.max(latest(), entry.lookedAt)
    const resultCode = sent.kind === 'error' ? sent.resultCode : null
    envelope.resultCode = resultCode
    if (sent.kind === 'error') {
      const known = entry.refusals.get(envelope.innerHash)
      const from = known?.from ?? (sent.contested ? entry.sentAt + CONTESTED_LEDGERS : 0)
      entry.refusals.set(envelope.innerHash, { resultCode: sent.resultCode, from })
    } else entry.refusals.delete(envelope.innerHash)
    await noteSent(await database(), envelope, { at: now(), resultCode })
    if (sent.kind !== 'error') return
    log('info', 'envelope refused', { hash: envelope.innerHash, code: sent.resultCode })
    if (!(await conclude(entry))) tellRefused(entry, entry.sentAt)
  }

  async function examine(entry: Tracked): Promise<void> {
    const looked = fix(entry)
    const answers = await lookUpAll(looked)
    const { sequenceNumber, recordedLedger } = looked.transfer
    const maxTime = maxTimeOf(looked.envelopes)
    const decision = decide({ sequenceNumber, recordedLedger, maxTime, answers })
    if (decision) await settle(entry, decision, looked)
    else if (answers.every(({ closedAt }) => closedAt > maxTime)) await conclude(entry)
    else await missing(entry, Math.min(...answers.map(({ latestLedger }) => latestLedger)), looked.envelopes)
  }

  /** Where one has applied, another may have failed at the sponsor's cost, which a node that lags does not know yet. */
  async function lookUpAll(looked: RecordedTransfer): Promise<HashAnswer[]> {
    const answers = await lookUpHashes(network, looked)
    const applied = answers.find(({ found }) => found?.consumed)?.found
    if (!applied || isAlone(looked, applied)) return answers
    const isBehind = answers.some(({ latestLedger }) => latestLedger < applied.ledger)
    return isBehind ? await lookUpHashes(network, looked, applied.ledger) : answers
  }

  /**
   * Sent again unchanged, once per ledger, while the account's number is the one before: another transaction may have used
   * it, and then no envelope can apply any more.
   */
  async function missing(entry: Tracked, ledger: number, looked: readonly Envelope[]): Promise<void> {
    // A rival that was recorded meanwhile was not looked for.
    if (setOf(entry.envelopes) === setOf(looked)) entry.lookedAt = ledger
    if (entry.sentAt >= ledger) return
    const { account } = await readAccount(entry.transfer.account)
    if (account && account.seqNum >= entry.transfer.sequenceNumber && (await conclude(entry))) return
    const envelope = pickEnvelope(entry)
    if (account?.seqNum === entry.transfer.sequenceNumber - 1n && envelope) await resubmit(entry, envelope)
    else tellRefused(entry, ledger)
  }

  async function found(entry: Tracked, record: LedgerRecord): Promise<void> {
    if (!record.consumed || !isAlone(entry, record)) return await examine(entry)
    const { succeeded, feeCharged } = record
    await settle(entry, { status: succeeded ? 'succeeded' : 'failed', record, feeCharged }, entry)
  }

  /** Asks for everything that can decide, of all envelopes that there are by now. Whether the transfer is settled. */
  async function conclude(entry: Tracked): Promise<boolean> {
    if (await reload(entry)) return true
    const looked = fix(entry)
    const { account: address, sequenceNumber, recordedLedger } = looked.transfer
    // The account first: what it shows as used must have had its chance to be known by hash.
    const { account, latestLedger } = await readAccount(address)
    const answers = await lookUpHashes(network, looked, latestLedger)
    const maxTime = maxTimeOf(looked.envelopes)
    const decideBy = (number: bigint | undefined, ledger: number) =>
      decide({ sequenceNumber, recordedLedger, maxTime, answers, account: { number, latestLedger: ledger } })
    let decision = decideBy(account?.seqNum, latestLedger)
    // Where history is gone, the account must be known of a ledger after every maxTime, and ledgers close meanwhile.
    if (!decision && answers.every(({ closedAt }) => closedAt > maxTime)) {
      const later = await readAccount(address)
      decision = decideBy(later.account?.seqNum, later.latestLedger)
    }
    return decision ? await settle(entry, decision, looked) : false
  }

  /** Reads the rows anew. Whether somebody else has settled the transfer. */
  async function reload(entry: Tracked): Promise<boolean> {
    const recorded = await findTransfer(await database(), entry.transfer.id)
    if (!recorded) throw new Error('a transfer that is tracked was never recorded')
    Object.assign(entry, recorded)
    if (recorded.transfer.status === 'open') return false
    finish(entry)
    return true
  }

  async function settle(entry: Tracked, made: Decision, { envelopes }: RecordedTransfer): Promise<boolean> {
    entry.decision = { made, looked: setOf(envelopes) }
    return await settleDecided(entry)
  }

  async function settleDecided(entry: Tracked): Promise<boolean> {
    if (!entry.decision) return false
    const { made: decision, looked } = entry.decision
    const settled = await settleTransfer(await database(), entry.transfer.id, { decision, looked, now: now(), books })
    entry.decision = undefined
    // A rival was recorded meanwhile: the next poll looks for that one, too.
    if (!settled) {
      entry.lookedAt = -1
      return await reload(entry)
    }
    entry.transfer = settled
    finish(entry)
    return true
  }

  function finish(entry: Tracked): void {
    const { id, status, account, hash, ledger, resultCode } = entry.transfer
    drop(entry)
    log('info', 'transfer settled', {
      transfer: id,
      account,
      status,
      hash: hash ?? undefined,
      ledger: ledger ?? undefined,
      code: resultCode ?? undefined,
    })
    tellSettled(entry, entry.transfer)
  }

  return { resubmit, examine, missing, found, settleDecided: async (entry) => void (await settleDecided(entry)) }
}

/**
 * What a look-up is about, from its first question to the decision. A request may put a rival into the entry meanwhile, and
 * a decision in the rival's name, of which nothing was asked, would let its payout be paid twice.
 */
const fix = ({ transfer, envelopes }: Tracked): RecordedTransfer => ({ transfer, envelopes })

/** Whether no other envelope can have cost anything: the only one that there is stands there as the service sent it. */
const isAlone = ({ envelopes: [first, ...rivals] }: RecordedTransfer, { hash }: LedgerRecord) =>
  first !== undefined && rivals.length === 0 && hashesOf(first)[0] === hash

/** The one with the highest bid, of those that the network has not refused if there are any. */
function pickEnvelope({ envelopes, refusals }: Tracked): Envelope | undefined {
  const isRefused = ({ innerHash, resultCode }: Envelope) => resultCode !== null || refusals.has(innerHash)
  const [first] = envelopes
    .filter(({ signed }) => signed !== null)
    .toSorted((one, other) => Number(isRefused(one)) - Number(isRefused(other)) || Number(other.bid - one.bid))
  return first
}
