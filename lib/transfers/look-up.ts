import { inArray } from 'drizzle-orm'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import type { AccountReading } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { type Lookup, lookUp } from '#lib/stellar/transaction.ts'
import { askUntilRecent } from '#lib/stellar/view.ts'
import { type Decision, decide, type Expected, type HashAnswer, type LedgerRecord, readRecord } from './decide.ts'
import { tryToRead } from './ledger-pages.ts'
import type { TrackingContext } from './resubmit.ts'
import { findEnvelopes, hashesOf, maxTimeOf, type RecordedTransfer, setOf } from './rows.ts'

const answerOf = (response: Lookup, record?: LedgerRecord): HashAnswer => {
  const { latestLedger, latestLedgerCloseTime: closedAt, oldestLedger } = response
  return { record, latestLedger, closedAt, oldestLedger }
}

/** What the lookup of one hash of a transfer has shown: the record, or that there is none. */
export interface Probe {
  record?: LedgerRecord
  /** by hash */
  answers?: ReadonlyMap<string, HashAnswer>
}

/** Looks up one hash of a transfer, which also shows the latest ledger. Throws LedgerError `unavailable`. */
export async function lookUpProbe(context: TrackingContext, { transfer, envelopes }: RecordedTransfer): Promise<Probe> {
  const { network, view } = context
  const [envelope] = envelopes
  if (!envelope) return {}
  const { innerHash, outerHash } = envelope
  const hash = outerHash ?? innerHash
  const response = await lookUp(network, hash)
  view.lookedUp(response.latestLedger)
  if (response.status === 'NOT_FOUND') return { answers: new Map([[hash, answerOf(response)]]) }
  const record = tryToRead(response, { innerHash, sponsor: transfer.sponsor, passphrase: network.passphrase })
  return record ? { record } : {}
}

/**
 * Looks up an open transfer by its hashes, and by its account once every max time has passed. Resolves to the decision, or to the
 * ledger up to which none of its envelopes was applied, which is recorded, or to undefined if the responses show neither.
 * @throws LedgerError `unavailable`
 */
export async function lookUpTransfer(
  context: TrackingContext,
  recorded: RecordedTransfer,
  { record: found, answers: known }: Probe = {},
): Promise<Decision | { ledger: number } | undefined> {
  if (found?.consumed && isAlone(recorded, found)) {
    return { status: found.succeeded ? 'succeeded' : 'failed', record: found, feeCharged: found.feeCharged }
  }
  const answers = await lookUpRivals(context, recorded, await lookUpHashes(context, recorded, { known }))
  const { sequenceNumber, recordedLedger } = recorded.transfer
  const maxTime = maxTimeOf(recorded.envelopes)
  const decision = decide({ sequenceNumber, recordedLedger, maxTime, answers })
  // What has expired may have lost its number to a transaction that this service does not know: only the account shows that.
  if (decision && decision.status !== 'expired') return decision
  if (answers.every(({ closedAt }) => closedAt > maxTime)) return await lookUpWithAccount(context, recorded)
  const ledger = Math.min(...answers.map(({ latestLedger }) => latestLedger))
  await noteLookedUp(await context.database(), [recorded], ledger)
  return { ledger }
}

/**
 * Looks up an open transfer by its account and its hashes. The account is read first: if it shows the number as used,
 * later responses must include the transaction that used it, if that was one of these.
 * @throws LedgerError `unavailable`
 */
export async function lookUpWithAccount(context: TrackingContext, recorded: RecordedTransfer) {
  const { account: address, sequenceNumber, recordedLedger } = recorded.transfer
  const reading = await context.readAccount(address)
  const answers = await lookUpHashes(context, recorded, { atLeast: reading.latestLedger })
  const maxTime = maxTimeOf(recorded.envelopes)
  const decideBy = ({ account, latestLedger }: AccountReading) =>
    decide({ sequenceNumber, recordedLedger, maxTime, answers, account: { number: account?.seqNum, latestLedger } })
  const decision = decideBy(reading)
  if (decision || !answers.every(({ closedAt }) => closedAt > maxTime)) return decision
  // If history is lost, the account must be read as of a ledger after every max time, and ledgers close in the meantime.
  return decideBy(await context.readAccount(address))
}

/**
 * Looks up a transfer by every hash of its envelopes, also the inner ones: a client may have submitted its own transaction.
 * @param given.atLeast a ledger; lookups are repeated if the response is older or its history doesn't reach back far enough
 * @param given.known recent responses, by hash
 * @throws LedgerError `unavailable`
 */
export function lookUpHashes(
  { network }: Pick<TrackingContext, 'network'>,
  { transfer, envelopes }: RecordedTransfer,
  { atLeast, known }: { atLeast?: number; known?: Probe['answers'] } = {},
): Promise<HashAnswer[]> {
  const { sponsor, recordedLedger } = transfer
  const ask = async (hash: string, innerHash: string): Promise<HashAnswer> => {
    const answer = known?.get(hash)
    if (answer) return answer
    const { response } = await askUntilRecent(
      () => lookUp(network, hash),
      ({ status, latestLedger, oldestLedger }) =>
        status !== 'NOT_FOUND' || atLeast === undefined || (latestLedger >= atLeast && oldestLedger <= recordedLedger),
    )
    if (response.status === 'NOT_FOUND') return answerOf(response)
    return answerOf(response, readRecord(response, { innerHash, sponsor, passphrase: network.passphrase }))
  }
  return Promise.all(envelopes.flatMap((envelope) => hashesOf(envelope).map((hash) => ask(hash, envelope.innerHash))))
}

/** If one envelope was applied, a rival may have failed at the sponsor's cost: the lookup is repeated until the node shows that. */
async function lookUpRivals(context: TrackingContext, recorded: RecordedTransfer, answers: HashAnswer[]) {
  const applied = answers.find(({ record }) => record?.consumed)?.record
  if (!applied || isAlone(recorded, applied)) return answers
  const isBehind = answers.some(({ latestLedger }) => latestLedger < applied.ledger)
  return isBehind ? await lookUpHashes(context, recorded, { atLeast: applied.ledger }) : answers
}

/** True if no other envelope can have cost anything: there is only one, and it was applied as the service submitted it. */
const isAlone = ({ envelopes: [first, ...rivals] }: RecordedTransfer, { hash }: LedgerRecord): boolean =>
  first !== undefined && rivals.length === 0 && hashesOf(first)[0] === hash

/**
 * Looks up a transaction that its client may have submitted. `absent`: up to ledger `asOf`, on which a refusal is based,
 * it didn't succeed. `unsure`: no response was recent enough to tell, and a refusal could lead to a second payment.
 * @param since unix seconds: a ledger that closed later is recent enough
 * @throws LedgerError `unavailable`
 */
export async function lookUpOwnTransaction(
  network: Network,
  { innerHash, sponsor }: Omit<Expected, 'passphrase'>,
  { asOf, since }: { asOf: number; since: number },
): Promise<LedgerRecord | 'absent' | 'unsure'> {
  const { response, isRecent } = await askUntilRecent(
    () => lookUp(network, innerHash),
    ({ status, latestLedger, latestLedgerCloseTime }) =>
      status !== 'NOT_FOUND' || (latestLedger >= asOf && latestLedgerCloseTime > since),
  )
  if (response.status === 'NOT_FOUND') return isRecent ? 'absent' : 'unsure'
  const record = readRecord(response, { innerHash, sponsor, passphrase: network.passphrase })
  return record.succeeded ? record : 'absent'
}

/** Records the ledger up to which transfers were looked up. One with another set of envelopes by now is skipped: they cleared it. */
export async function noteLookedUp(db: Database, lookedUp: readonly RecordedTransfer[], ledger: number): Promise<void> {
  if (lookedUp.length === 0) return
  const ids = lookedUp.map(({ transfer }) => transfer.id)
  const areThey = inArray(transfers.id, ids)
  await transact(db, async (tx) => {
    await tx.select({ id: transfers.id }).from(transfers).where(areThey).orderBy(transfers.id).for('no key update')
    const competing = Map.groupBy(await findEnvelopes(tx, ids), ({ transfer }) => transfer)
    const unchanged = lookedUp
      .filter(({ transfer, envelopes }) => setOf(envelopes) === setOf(competing.get(transfer.id) ?? []))
      .map(({ transfer }) => transfer.id)
    await tx.update(transfers).set({ lookedUpLedger: ledger }).where(inArray(transfers.id, unchanged))
  })
}
