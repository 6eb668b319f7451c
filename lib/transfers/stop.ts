import { and, eq, isNotNull, isNull, lt, or, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { paymentStops, relayChannels } from '#drizzle/schema/relay.ts'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { FOREIGN } from '#lib/archive/identity.ts'
import { RELAY, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'
import { log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { NOT_CONSUMED } from './decide.ts'
import { MAY_HAVE_USED_NUMBER } from './rows.ts'

/** A stop of a token's payments: when it began, and how many payments without a row were found since. */
export interface Stop {
  since: Date
  found: number
}

const isToken = (token: string) => eq(paymentStops.token, token)

/** The condition that payments of a token go on: they are not stopped, and the network is the database's. */
export const paymentsGoOn = (token: string) =>
  sql`not exists (select from ${paymentStops} where ${isToken(token)}
    and num_nonnulls(${paymentStops.since}, ${paymentStops.foreignSince}) > 0)`

/** Makes sure that the token has its row, which payments lock. */
export async function openPayments(db: Database, token: string): Promise<void> {
  await db.insert(paymentStops).values({ token }).onConflictDoNothing()
}

export async function readStop(db: Database, token: string): Promise<Stop | undefined> {
  const [row] = await db.select().from(paymentStops).where(isToken(token))
  return row?.since ? { since: row.since, found: row.found } : undefined
}

/** Whether this stop is still on, and has not begun again. Locks its row, so that this holds until the SQL transaction ends. */
export async function lockStop(tx: Database, token: string, { since }: Stop): Promise<boolean> {
  const isThis = and(isToken(token), eq(paymentStops.since, since))
  return (await tx.select({ token: paymentStops.token }).from(paymentStops).where(isThis).for('share')).length > 0
}

/**
 * Stops the payments of a token. Every payment that was recorded before is visible from then on: this waits for those that are
 * being recorded.
 * @param again the beginning of the stop that begins again, because a channel moved after it was reconciled
 */
export async function stopPayments(
  tx: Database,
  { token, channel, now, again }: { token: string; channel: string; now: Date; again?: Date | undefined },
): Promise<void> {
  const { since } = paymentStops
  const isOn = or(isNull(since), again && eq(since, again))
  const stopped = await tx
    .insert(paymentStops)
    .values({ token, since: sql`clock_timestamp()` })
    .onConflictDoUpdate({ target: paymentStops.token, set: { since: sql`clock_timestamp()` }, setWhere: isOn })
    .returning({ token: paymentStops.token })
  if (stopped.length === 0) return
  log('error', 'payments stopped', { token, channel })
  const entry = { organisation: undefined, actor: RELAY, action: 'payments.stopped' as const, subject: token }
  await recordAudit(tx, now, { ...entry, detail: { channel } })
}

/** Whether payments of a token go on. Locks its row against a stop, in the SQL transaction that records a payment. */
export async function lockPayments(tx: Database, token: string): Promise<boolean> {
  const lock = () => tx.select().from(paymentStops).where(isToken(token)).for('share')
  let [row] = await lock()
  if (!row) await openPayments(tx, token)
  row ??= (await lock())[0]
  return row?.since === null && row.foreignSince === null
}

/** Counts a payment that was found on the ledger, if payments are stopped. */
export async function countFound(tx: Database, token: string): Promise<void> {
  const found = sql`${paymentStops.found} + 1`
  const isStopped = and(isToken(token), isNotNull(paymentStops.since))
  await tx.update(paymentStops).set({ found }).where(isStopped)
}

/** Refuses every transaction of a client while the RPC serves another network: LedgerError `unavailable`. */
export async function refuseForeignNetwork(tx: Database): Promise<void> {
  const isForeign = isNotNull(paymentStops.foreignSince)
  if ((await tx.$count(paymentStops, isForeign)) > 0) throw new LedgerError('unavailable', FOREIGN)
}

/**
 * Whether a client's payment might pay again what a channel has paid: payments are stopped, and a payout of the organisation to
 * this recipient, or the named one, is from before the stop. Locks the rows of all tokens against a stop.
 */
export async function isReconciling(
  tx: Database,
  { organisation, recipient, payoutId }: { organisation: string; recipient: string; payoutId: string | undefined },
): Promise<boolean> {
  const rows = await tx.select({ since: paymentStops.since }).from(paymentStops).for('share')
  const latest = Math.max(...rows.map(({ since }) => since?.getTime() ?? 0), 0)
  if (latest === 0) return false
  const isNamed = payoutId !== undefined && isId(payoutId) ? eq(payouts.id, payoutId) : undefined
  const isIt = or(eq(payouts.address, recipient), isNamed)
  const isEarlier = and(eq(payouts.organisation, organisation), isIt, lt(payouts.createdAt, new Date(latest)))
  return (await tx.$count(payouts, and(isEarlier, sql`${payouts.status} not in ('paid', 'canceled')`))) > 0
}

/** The highest number of a channel that may be used: the one at which it was adopted, or that of a transfer. Null before that. */
export const KNOWN_NUMBER = sql`greatest(${relayChannels.adoptedSequence}, (select max(${transfers.sequenceNumber})
  from ${transfers} where ${transfers.account} = ${relayChannels.address} and ${MAY_HAVE_USED_NUMBER}))`.mapWith(
  relayChannels.adoptedSequence,
)

/** Whether a transfer ended because something else may have used its number: a transaction that this database does not have. */
export const mayHaveLostNumber = ({ status, resultCode }: Pick<Transfer, 'status' | 'resultCode'>): boolean =>
  (status === 'expired' && resultCode !== null) || (status === 'failed' && NOT_CONSUMED.has(resultCode ?? ''))

/** Locks the rows of all tokens for a stop, before anything else in the SQL transaction that settles such a transfer. */
export async function lockForStop(tx: Database): Promise<void> {
  await tx.select({ token: paymentStops.token }).from(paymentStops).orderBy(paymentStops.token).for('update')
}

/**
 * Stops payments if a transfer of a channel has lost its number to a transaction that this database does not have: that may have
 * paid the same. No other channel pays it in the meantime, because its line is free only once this SQL transaction commits.
 */
export async function stopIfUnexplained(
  tx: Database,
  { account, sequenceNumber, ...end }: Pick<Transfer, 'account' | 'sequenceNumber' | 'status' | 'resultCode'>,
  now: Date,
): Promise<void> {
  if (!mayHaveLostNumber(end)) return
  const { token, address, reconciledStop: again, retired } = relayChannels
  const isOfThis = and(eq(address, account), eq(retired, false))
  const channels = await tx.select({ token, again, known: KNOWN_NUMBER }).from(relayChannels).where(isOfThis)
  for (const { token, again, known } of channels) {
    if ((known ?? 0n) >= sequenceNumber) continue
    await stopPayments(tx, { token, channel: account, now, again: again ?? undefined })
  }
}
