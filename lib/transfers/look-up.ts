import type { Database } from '#lib/db/connection.ts'
import type { ReadAccount } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { type Decision, decide, type Expected, type HashAnswer, type LedgerRecord, readRecord } from './decide.ts'
import { walkLedgers } from './ledger-pages.ts'
import { askUntilRecent, type Recency } from './recency.ts'
import { hashesOf, maxTimeOf, noteLookedUp, type RecordedTransfer } from './rows.ts'

/** What tracking a transfer needs: no key, and nothing of a single transfer. */
export interface TrackingContext {
  network: Network
  /** opens the database for each use, so that an outage only causes a wait */
  database: () => Promise<Database>
  /** reads accounts; combines concurrent reads into one call */
  readAccount: ReadAccount
  recency: Recency
  now: () => Date
}

/** A walk begins at most LONGEST_WALK ledgers back. One round looks up at most MOST transfers one by one. */
const LONGEST_WALK = 20
const MOST = 25

/** What a round does with the transfers that it looks up. */
interface Round {
  /** whether a transfer is looked up even if a process has done so in this ledger */
  isRequested(id: string): boolean
  /** Moves a transfer behind all others, so that transfers whose lookups fail don't block them. */
  putLast(id: string): void
  /** Runs the work for one transfer. Its failure doesn't stop the others. */
  attempt(subject: string, work: () => Promise<unknown>): Promise<void>
  settle(recorded: RecordedTransfer, decision: Decision): Promise<void>
  /** @param ledger the ledger up to which none of its envelopes was applied */
  resubmit(recorded: RecordedTransfer, ledger: number): Promise<void>
}

/**
 * Learns whether a ledger has closed, and only then looks transfers up: several by the pages of the ledgers since the last
 * lookup; a single one, or with an RPC that has no pages, by one of them, a different one each time, and then all of them.
 * In a process that was idle, this first lookup shows the latest ledger, and the others are looked up by pages. Resolves
 * to the transfers that the next round has to look up.
 */
export async function lookUpAll(
  context: TrackingContext,
  open: readonly RecordedTransfer[],
  round: Round,
): Promise<RecordedTransfer[]> {
  const { recency } = context
  const [probe] = open
  if (!probe) return []
  const isRequested = ({ transfer }: RecordedTransfer) => round.isRequested(transfer.id)
  const lookedUp = ({ transfer }: RecordedTransfer) => recency.hint(transfer.lookedUpLedger) ?? -1
  const isRecent = (one: RecordedTransfer) =>
    !isRequested(one) && lookedUp(one) >= Math.max(0, recency.latestLedger() - LONGEST_WALK)
  const recent = open.filter(isRecent)
  let done = recent.length > 1 ? await lookUpInPages(context, recent, lookedUp, round) : undefined
  if (!done) {
    const over = (await lookUpProbe(context, probe, round)) ? [probe] : []
    const others = recent.length > 1 ? [] : open.filter((one) => !over.includes(one) && isRecent(one))
    const found = others.length > 1 ? await lookUpInPages(context, others, lookedUp, round) : undefined
    done = new Set([...over, ...(found ?? [])])
  }
  const latest = recency.latestLedger()
  const separate = open
    .filter((one) => !done.has(one) && (isRequested(one) || lookedUp(one) < latest))
    .toSorted((one, other) => Number(isRequested(other)) - Number(isRequested(one)))
  const rest = separate.slice(0, MOST)
  for (const { transfer } of rest) round.putLast(transfer.id)
  await Promise.all(rest.map((one) => round.attempt(one.transfer.id, () => lookUpOne(context, one, round))))
  return separate.slice(MOST)
}

/** Looks up one hash of a transfer, which also shows the latest ledger. True if that ended the transfer's round. */
async function lookUpProbe(context: TrackingContext, probe: RecordedTransfer, round: Round): Promise<boolean> {
  const { network, recency } = context
  const { transfer, envelopes } = probe
  const [envelope] = envelopes
  round.putLast(transfer.id)
  if (!envelope) return true
  const { innerHash, outerHash } = envelope
  const response = await lookUp(network, outerHash ?? innerHash)
  recency.observeRound(response.latestLedger, response.latestLedgerCloseTime)
  if (response.status === 'NOT_FOUND') return false
  let isOver = false
  await round.attempt(transfer.id, async () => {
    const expected = { innerHash, sponsor: transfer.sponsor, passphrase: network.passphrase }
    await settleRecord(context, probe, readRecord(response, expected), round)
    isOver = true
  })
  return isOver
}

/**
 * Looks transfers up in the pages of the ledgers since their last lookup, that ledger included: the RPC always has it, and a
 * later one only once it has closed. Resolves to the transfers that need no separate lookup; undefined if there were no pages.
 */
async function lookUpInPages(
  context: TrackingContext,
  recent: RecordedTransfer[],
  lookedUp: (recorded: RecordedTransfer) => number,
  round: Round,
): Promise<Set<RecordedTransfer> | undefined> {
  let done: Set<RecordedTransfer> | undefined
  // With an RPC that has no pages, or whose nodes lag, all of them are looked up one by one.
  await round.attempt('pages', async () => {
    const walk = await walkLedgers(context.network, recent, Math.min(...recent.map(lookedUp)))
    const { records, absent, latestLedger } = walk
    context.recency.observeRound(latestLedger, walk.closedAt)
    const later = absent.filter((one) => lookedUp(one) < latestLedger)
    if (later.length > 0) await noteLookedUp(await context.database(), later, latestLedger)
    done = new Set([...records.keys(), ...absent])
    await Promise.all([
      ...[...records].map(([one, record]) =>
        round.attempt(one.transfer.id, () => settleRecord(context, one, record, round)),
      ),
      ...later.map((one) => round.attempt(one.transfer.id, () => round.resubmit(one, latestLedger))),
    ])
  })
  return done
}

async function settleRecord(
  context: TrackingContext,
  recorded: RecordedTransfer,
  record: LedgerRecord,
  round: Round,
): Promise<void> {
  if (!record.consumed || !isAlone(recorded, record)) return await lookUpOne(context, recorded, round)
  const { succeeded, feeCharged } = record
  await round.settle(recorded, { status: succeeded ? 'succeeded' : 'failed', record, feeCharged })
}

async function lookUpOne(context: TrackingContext, recorded: RecordedTransfer, round: Round): Promise<void> {
  const result = await lookUpTransfer(context, recorded)
  if (!result) return
  if ('status' in result) return await round.settle(recorded, result)
  await noteLookedUp(await context.database(), [recorded], result.ledger)
  await round.resubmit(recorded, result.ledger)
}

/**
 * Looks up an open transfer by its hashes, and by its account once every max time has passed. Resolves to the decision,
 * or to the ledger up to which none of its envelopes was applied, or to undefined if the responses show neither.
 * @throws LedgerError `unavailable`
 */
async function lookUpTransfer(
  context: TrackingContext,
  recorded: RecordedTransfer,
): Promise<Decision | { ledger: number } | undefined> {
  const answers = await lookUpRivals(context, recorded, await lookUpHashes(context, recorded))
  const { sequenceNumber, recordedLedger } = recorded.transfer
  const maxTime = maxTimeOf(recorded.envelopes)
  const decision = decide({ sequenceNumber, recordedLedger, maxTime, answers })
  if (decision) return decision
  if (answers.every(({ closedAt }) => closedAt > maxTime)) return await lookUpWithAccount(context, recorded)
  return { ledger: Math.min(...answers.map(({ latestLedger }) => latestLedger)) }
}

/**
 * Looks up an open transfer by its account and its hashes. The account is read first: if it shows the number as used,
 * later responses must include the transaction that used it, if that was one of these.
 * @throws LedgerError `unavailable`
 */
export async function lookUpWithAccount(
  context: TrackingContext,
  recorded: RecordedTransfer,
): Promise<Decision | undefined> {
  const { account: address, sequenceNumber, recordedLedger } = recorded.transfer
  const { account, latestLedger } = await context.readAccount(address)
  const answers = await lookUpHashes(context, recorded, latestLedger)
  const maxTime = maxTimeOf(recorded.envelopes)
  const decideBy = (number: bigint | undefined, ledger: number) =>
    decide({ sequenceNumber, recordedLedger, maxTime, answers, account: { number, latestLedger: ledger } })
  const decision = decideBy(account?.seqNum, latestLedger)
  if (decision || !answers.every(({ closedAt }) => closedAt > maxTime)) return decision
  // If history is lost, the account must be read as of a ledger after every max time, and ledgers close in the meantime.
  const later = await context.readAccount(address)
  return decideBy(later.account?.seqNum, later.latestLedger)
}

/**
 * Looks up a transfer by every hash of its envelopes: the outer ones, and the inner ones, since a client may have
 * submitted its own transaction.
 * @param atLeast a ledger; lookups are repeated if the response is older or its history doesn't reach back far enough
 * @throws LedgerError `unavailable`
 */
export function lookUpHashes(
  { network, recency }: Pick<TrackingContext, 'network' | 'recency'>,
  { transfer, envelopes }: RecordedTransfer,
  atLeast?: number,
): Promise<HashAnswer[]> {
  const { sponsor, recordedLedger } = transfer
  const ask = async (hash: string, innerHash: string): Promise<HashAnswer> => {
    const { response } = await askUntilRecent(
      () => lookUp(network, hash),
      ({ status, latestLedger, oldestLedger }) =>
        status !== 'NOT_FOUND' || atLeast === undefined || (latestLedger >= atLeast && oldestLedger <= recordedLedger),
    )
    const { latestLedger, latestLedgerCloseTime: closedAt, oldestLedger } = response
    recency.observe(latestLedger, closedAt)
    const { passphrase } = network
    const record =
      response.status === 'NOT_FOUND' ? undefined : readRecord(response, { innerHash, sponsor, passphrase })
    return { latestLedger, closedAt, oldestLedger, record }
  }
  return Promise.all(envelopes.flatMap((envelope) => hashesOf(envelope).map((hash) => ask(hash, envelope.innerHash))))
}

/**
 * If one envelope was applied, a rival may have failed at the sponsor's cost. A lagging node doesn't show that yet, so
 * the lookup is repeated.
 */
async function lookUpRivals(
  context: TrackingContext,
  recorded: RecordedTransfer,
  answers: HashAnswer[],
): Promise<HashAnswer[]> {
  const applied = answers.find(({ record }) => record?.consumed)?.record
  if (!applied || isAlone(recorded, applied)) return answers
  const isBehind = answers.some(({ latestLedger }) => latestLedger < applied.ledger)
  return isBehind ? await lookUpHashes(context, recorded, applied.ledger) : answers
}

/** True if no other envelope can have cost anything: there is only one, and it was applied as the service submitted it. */
const isAlone = ({ envelopes: [first, ...rivals] }: RecordedTransfer, { hash }: LedgerRecord): boolean =>
  first !== undefined && rivals.length === 0 && hashesOf(first)[0] === hash

/**
 * Looks up a transaction that its client may have submitted. `absent`: up to ledger `asOf`, on which a refusal is based,
 * it didn't succeed. `unsure`: no response was recent enough to tell, and a refusal could lead to a second payment.
 * @param isPresent whether a ledger that closed then (unix seconds) is recent enough
 * @throws LedgerError `unavailable`
 */
export async function lookUpOwnTransaction(
  { network, recency }: Pick<TrackingContext, 'network' | 'recency'>,
  { innerHash, sponsor }: Omit<Expected, 'passphrase'>,
  { asOf, isPresent }: { asOf: number; isPresent: (closedAt: number) => boolean },
): Promise<LedgerRecord | 'absent' | 'unsure'> {
  const { response, isRecent } = await askUntilRecent(
    () => lookUp(network, innerHash),
    ({ status, latestLedger, latestLedgerCloseTime }) =>
      status !== 'NOT_FOUND' || (latestLedger >= asOf && isPresent(latestLedgerCloseTime)),
  )
  recency.observe(response.latestLedger, response.latestLedgerCloseTime)
  if (response.status === 'NOT_FOUND') return isRecent ? 'absent' : 'unsure'
  const record = readRecord(response, { innerHash, sponsor, passphrase: network.passphrase })
  return record.succeeded ? record : 'absent'
}
