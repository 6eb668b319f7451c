import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import type { ReadAccount } from '#lib/stellar/account.ts'
import { isLagging, type Network } from '#lib/stellar/network.ts'
import { send } from '#lib/stellar/transaction.ts'
import { type Decision, decide, type HashAnswer, type LedgerRecord } from './decide.ts'
import { hashesOf, lookUpHashes, maxTimeOf } from './look-up.ts'
import {
  type Books,
  type Envelope,
  findTransfer,
  noteSent,
  type RecordedTransfer,
  setOf,
  settleTransfer,
} from './rows.ts'
import { type Tracked, tellRefused, tellSettled } from './tracked.ts'

/** The steps of one open transfer. Each throws when RPC or database cannot be reached. */
interface Tracking {
  /** Sends the network an envelope, for the first time or once more. */
  submit(entry: Tracked, envelope: Envelope): Promise<void>
  /** Looks it up by its hashes, and decides it if they can. */
  lookUp(entry: Tracked): Promise<void>
  /**
   * Sends an envelope again, since no ledger up to `ledger` has any of `envelopes`: all that were recorded when the
   * look-up began.
   */
  resubmit(entry: Tracked, ledger: number, envelopes: readonly Envelope[]): Promise<void>
  /** Settles it by a record that was found under one of its hashes. */
  settleFound(entry: Tracked, record: LedgerRecord): Promise<void>
  /** Writes a decision that was made while the database was out of reach. */
  settleDecided(entry: Tracked): Promise<void>
}

/** The tools of tracking. `drop` ends the tracking of one; `latest` is the latest ledger that the process knows of. */
export interface TrackingTools {
  network: Network
  readAccount: ReadAccount
  database: () => Promise<Database>
  now: () => Date
  books: Books
  drop: (entry: Tracked) => void
  latest: () => number
}

/**
 * A contested refusal can mean that the network has the same transaction, or a rival, already. It is believed only
 * after so many ledgers.
 */
const CONTESTED_LEDGERS = 2

export function openTracking({ network, readAccount, database, now, books, drop, latest }: TrackingTools): Tracking {
  async function submit(entry: Tracked, envelope: Envelope): Promise<void> {
    if (envelope.signed === null) return
    const sent = await send(network, envelope.signed)
    // The refusal of signatures that a request has renewed meanwhile says nothing of the new ones.
    if (!entry.envelopes.some(({ outerHash }) => outerHash === envelope.outerHash)) return
    // A ledger that closed before the sending cannot have it. A number far above those that are known says nothing.
    const known = Math.max(latest(), entry.lookedUpTo)
    const { latestLedger = known } = sent
    entry.sentAt = isLagging(known, latestLedger) ? latestLedger : known
    const resultCode = sent.kind === 'error' ? sent.resultCode : null
    envelope.resultCode = resultCode
    if (sent.kind === 'error') {
      const refused = entry.refusals.get(envelope.innerHash)
      const from = refused?.from ?? (sent.contested ? entry.sentAt + CONTESTED_LEDGERS : 0)
      entry.refusals.set(envelope.innerHash, { resultCode: sent.resultCode, from })
    } else entry.refusals.delete(envelope.innerHash)
    await noteSent(await database(), envelope, { at: now(), resultCode })
    if (sent.kind !== 'error') return
    log('info', 'envelope refused', { hash: envelope.innerHash, code: sent.resultCode })
    if (!(await lookUpWithAccount(entry))) tellRefused(entry, entry.sentAt)
  }

  async function lookUp(entry: Tracked): Promise<void> {
    const recorded = copyOf(entry)
    const answers = await lookUpAll(recorded)
    const { sequenceNumber, recordedLedger } = recorded.transfer
    const maxTime = maxTimeOf(recorded.envelopes)
    const decision = decide({ sequenceNumber, recordedLedger, maxTime, answers })
    if (decision) await settle(entry, decision, recorded)
    else if (answers.every(({ closedAt }) => closedAt > maxTime)) await lookUpWithAccount(entry)
    else await resubmit(entry, Math.min(...answers.map(({ latestLedger }) => latestLedger)), recorded.envelopes)
  }

  /**
   * Where one envelope has applied, a rival may have failed at the sponsor's cost. A node that lags does not know that
   * yet, so it is asked again.
   */
  async function lookUpAll(recorded: RecordedTransfer): Promise<HashAnswer[]> {
    const answers = await lookUpHashes(network, recorded)
    const applied = answers.find(({ found }) => found?.consumed)?.found
    if (!applied || isAlone(recorded, applied)) return answers
    const isBehind = answers.some(({ latestLedger }) => latestLedger < applied.ledger)
    return isBehind ? await lookUpHashes(network, recorded, applied.ledger) : answers
  }

  /**
   * Sent again unchanged, once per ledger, while the account's number is the one before: another transaction may have used
   * it, and then no envelope can apply any more.
   */
  async function resubmit(entry: Tracked, ledger: number, envelopes: readonly Envelope[]): Promise<void> {
    // A rival that was recorded meanwhile was not looked up.
    if (setOf(entry.envelopes) === setOf(envelopes)) entry.lookedUpTo = ledger
    if (entry.sentAt >= ledger) return
    const { account } = await readAccount(entry.transfer.account)
    if (account && account.seqNum >= entry.transfer.sequenceNumber && (await lookUpWithAccount(entry))) return
    const envelope = pickEnvelope(entry)
    if (account?.seqNum === entry.transfer.sequenceNumber - 1n && envelope) await submit(entry, envelope)
    else tellRefused(entry, ledger)
  }

  async function settleFound(entry: Tracked, record: LedgerRecord): Promise<void> {
    if (!record.consumed || !isAlone(entry, record)) return await lookUp(entry)
    const { succeeded, feeCharged } = record
    await settle(entry, { status: succeeded ? 'succeeded' : 'failed', record, feeCharged }, entry)
  }

  /** Looks up the account, and every envelope that is recorded by now. True if that settles the transfer. */
  async function lookUpWithAccount(entry: Tracked): Promise<boolean> {
    if (await reload(entry)) return true
    const recorded = copyOf(entry)
    const { account: address, sequenceNumber, recordedLedger } = recorded.transfer
    // The account is read before the hashes. Where it shows the number as used, later answers must know the
    // transaction that used it, if it was one of these.
    const { account, latestLedger } = await readAccount(address)
    const answers = await lookUpHashes(network, recorded, latestLedger)
    const maxTime = maxTimeOf(recorded.envelopes)
    const decideBy = (number: bigint | undefined, ledger: number) =>
      decide({ sequenceNumber, recordedLedger, maxTime, answers, account: { number, latestLedger: ledger } })
    let decision = decideBy(account?.seqNum, latestLedger)
    // Where history is gone, the account must be known of a ledger after every maxTime, and ledgers close meanwhile.
    if (!decision && answers.every(({ closedAt }) => closedAt > maxTime)) {
      const later = await readAccount(address)
      decision = decideBy(later.account?.seqNum, later.latestLedger)
    }
    return decision ? await settle(entry, decision, recorded) : false
  }

  /** Reads the rows anew. True if another process has settled the transfer. */
  async function reload(entry: Tracked): Promise<boolean> {
    const recorded = await findTransfer(await database(), entry.transfer.id)
    if (!recorded) throw new Error('a transfer that is tracked was never recorded')
    Object.assign(entry, recorded)
    if (recorded.transfer.status === 'open') return false
    finish(entry)
    return true
  }

  async function settle(entry: Tracked, made: Decision, { envelopes }: RecordedTransfer): Promise<boolean> {
    entry.decision = { made, lookedUp: setOf(envelopes) }
    return await settleDecided(entry)
  }

  async function settleDecided(entry: Tracked): Promise<boolean> {
    if (!entry.decision) return false
    const { made: decision, lookedUp } = entry.decision
    const settled = await settleTransfer(await database(), entry.transfer.id, { decision, lookedUp, now: now(), books })
    entry.decision = undefined
    // A rival was recorded meanwhile: the next poll looks that one up, too.
    if (!settled) {
      entry.lookedUpTo = -1
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

  return { submit, lookUp, resubmit, settleFound, settleDecided: async (entry) => void (await settleDecided(entry)) }
}

/**
 * The transfer and its envelopes as they are when a look-up begins. A request may add a rival to the entry during the
 * look-up, and a decision that counts the rival as looked up would let its payout be paid twice.
 */
const copyOf = ({ transfer, envelopes }: Tracked): RecordedTransfer => ({ transfer, envelopes })

/** True if no other envelope can have cost anything: there is one only, and it stands there as the service sent it. */
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
