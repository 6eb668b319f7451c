import { and, asc, desc, eq, getTableColumns, inArray, isNotNull, notInArray, or, type SQL, sql } from 'drizzle-orm'
import { envelopes, type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { NOT_CONSUMED } from './decide.ts'
import type { Intent } from './policy.ts'

export type { Transfer } from '#drizzle/schema/transfers.ts'

const { signed, sealedOpening: _, ...stateColumns } = getTableColumns(envelopes)
/** Reads everything about an envelope but its XDR, which is large and only needed to submit it, and what is sealed. */
const ENVELOPE_STATE = { ...stateColumns, isSendable: sql<boolean>`${signed} is not null` }

/** An envelope without its XDR. `isSendable`: the service has that, and may submit it. */
export type Envelope = Omit<typeof envelopes.$inferSelect, 'signed' | 'sealedOpening'> & { isSendable: boolean }

/** A transfer and the envelopes that compete for it: enough for any process to find out how it ended. */
export interface RecordedTransfer {
  transfer: Transfer
  envelopes: Envelope[]
}

/** The last max time of a transfer, unix seconds. */
export const maxTimeOf = (envelopes: readonly Pick<Envelope, 'maxTime'>[]): number =>
  Math.max(...envelopes.map(({ maxTime }) => maxTime))

/** The hashes under which the ledger may file an envelope. */
export const hashesOf = ({ innerHash, outerHash }: Pick<Envelope, 'innerHash' | 'outerHash'>): string[] =>
  outerHash === null ? [innerHash] : [outerHash, innerHash]

/** The transfers with these IDs, in any order. */
export async function findTransfers(db: Database, ids: readonly string[]): Promise<RecordedTransfer[]> {
  if (ids.length === 0) return []
  const rows = await db.select().from(transfers).where(inArray(transfers.id, ids))
  const competing = Map.groupBy(await findEnvelopes(db, ids), ({ transfer }) => transfer)
  return rows.map((transfer) => ({ transfer, envelopes: competing.get(transfer.id) ?? [] }))
}

export const findTransfer = async (db: Database, id: string): Promise<RecordedTransfer | undefined> =>
  (await findTransfers(db, [id]))[0]

/** The envelopes of transfers, in the order in which they were recorded. */
export const findEnvelopes = (db: Database, ids: readonly string[]): Promise<Envelope[]> =>
  db
    .select(ENVELOPE_STATE)
    .from(envelopes)
    .where(inArray(envelopes.transfer, [...ids]))
    .orderBy(asc(envelopes.recordedAt), asc(envelopes.innerHash))

/** The transfer that a transaction is recorded for, by its hash (64 hex digits): the inner one, or that of its fee bump. */
export async function findTransferOfHash(db: Database, hash: string): Promise<RecordedTransfer | undefined> {
  const { transfer, innerHash, outerHash } = envelopes
  const isIt = or(eq(innerHash, hash), eq(outerHash, hash))
  const [envelope] = await db.select({ transfer }).from(envelopes).where(isIt)
  return envelope && (await findTransfer(db, envelope.transfer))
}

/** The transfer that an inner transaction is recorded for, and a clock that begins at the database's time. */
export async function findTransferAndClock(db: Database, innerHash: string) {
  const [row] = await db
    .select({ now: CLOCK_MS, transfer: envelopes.transfer })
    .from(sql`(VALUES (1)) AS one`)
    .leftJoin(envelopes, eq(envelopes.innerHash, innerHash))
  if (!row) throw new Error('the database returned no time')
  const { now, transfer } = row
  const readAt = performance.now()
  const clock = () => new Date(now + performance.now() - readAt)
  return { existing: transfer === null ? undefined : await findTransfer(db, transfer), clock }
}

const CLOCK_MS = sql<number>`(extract(epoch FROM clock_timestamp()) * 1000)::double precision`

// A literal: planned for any value, the statement could not use the index of the open transfers.
const isOpenOf = (account: string) => and(eq(transfers.account, account), sql`${transfers.status} = 'open'`)

/** The one open transfer that an account can have. */
export const findOpenTransfer = async (db: Database, account: string): Promise<Transfer | undefined> =>
  (await db.select().from(transfers).where(isOpenOf(account)))[0]

type Call = Pick<Transfer, 'kind' | 'owner' | 'recipient'>

export const isSameCall = (one: Call, other: Call): boolean =>
  one.kind === other.kind && one.owner === other.owner && one.recipient === other.recipient

/** Whether a transaction may compete for its account's open transfer: same number, same call, same recipient. */
export const isRival = (open: Transfer, { to: recipient, ...intent }: Intent): boolean =>
  open.sequenceNumber === intent.sequenceNumber && isSameCall(open, { ...intent, recipient })

/** A transfer, locked against its decision. */
export const lockTransfer = (tx: Database, id: string) => lock(tx, eq(transfers.id, id))

/** The account's open transfer, locked against its decision. */
export const lockOpenTransfer = (tx: Database, account: string) => lock(tx, isOpenOf(account))

async function lock(tx: Database, isIt: SQL | undefined): Promise<Transfer | undefined> {
  return (await tx.select().from(transfers).where(isIt).for('no key update'))[0]
}

/** The condition for transfers that have used their sequence number, or still may. */
export const MAY_HAVE_USED_NUMBER = sql`(${transfers.status} in ('open', 'succeeded', 'unknown')
  or (${transfers.status} = 'failed' and ${notInArray(transfers.resultCode, [...NOT_CONSUMED])}))`

export type NewTransfer = Partial<
  Pick<Transfer, 'owner' | 'sponsor' | 'quotaAccount' | 'organisation' | 'requestId' | 'lineJob' | 'linePosition'>
> &
  Pick<Transfer, 'kind' | 'account' | 'sequenceNumber' | 'recipient' | 'quotaDay' | 'recordedLedger' | 'createdAt'>

/** Begins a transfer with its first envelope. `taken`: its account has an open one. `known`: see `addFirstEnvelope`. */
export async function beginTransfer(tx: Database, row: NewTransfer, envelope: NewEnvelope) {
  // No ledger up to the recorded one can include it.
  const began = { ...row, bid: envelope.bid, lookedUpLedger: row.recordedLedger }
  const [transfer] = await tx.insert(transfers).values(began).onConflictDoNothing().returning()
  return transfer ? await addFirstEnvelope(tx, transfer, envelope) : ('taken' as const)
}

/** Adds the envelope of a new transfer. `known`: it is recorded already, for another one, and the new one is deleted again. */
export async function addFirstEnvelope(tx: Database, transfer: Transfer, envelope: NewEnvelope) {
  const added = await addEnvelope(tx, transfer, envelope)
  if (added) return { transfer, envelopes: [added] }
  await tx.delete(transfers).where(eq(transfers.id, transfer.id))
  return 'known' as const
}

/** The transaction that is signed for a transfer. `signed` is null if there is nothing to submit. */
export type NewEnvelope = Pick<Envelope, 'innerHash' | 'outerHash' | 'bid' | 'maxTime'> & {
  signed: string | null
  sealedOpening?: string | null
}

/** Adds an envelope to a transfer whose row the SQL transaction has locked. Undefined if it is recorded already. */
export async function addEnvelope(
  tx: Database,
  { id: transfer }: Transfer,
  envelope: NewEnvelope,
): Promise<Envelope | undefined> {
  const row = { ...envelope, transfer }
  return (await tx.insert(envelopes).values(row).onConflictDoNothing().returning(ENVELOPE_STATE))[0]
}

/** The IDs of the open transfers that match `condition`, oldest first. */
export async function findOpenTransfers(
  db: Database,
  { condition, limit }: { condition?: SQL | undefined; limit?: number } = {},
): Promise<string[]> {
  const isOpen = and(eq(transfers.status, 'open'), condition)
  const query = db.select({ id: transfers.id }).from(transfers).where(isOpen).orderBy(transfers.createdAt)
  const open = await (limit === undefined ? query : query.limit(limit))
  return open.map(({ id }) => id)
}

/** The latest ledger that is known to include a transfer of `account`; 0 without one. */
export async function lastLedgerOf(db: Database, account: string): Promise<number> {
  const [last] = await db
    .select({ ledger: transfers.ledger })
    .from(transfers)
    .where(and(eq(transfers.account, account), isNotNull(transfers.ledger)))
    // A transaction that failed without using up its number has the same one as its successor.
    .orderBy(desc(transfers.sequenceNumber), desc(transfers.ledger))
    .limit(1)
  return last?.ledger ?? 0
}

/** Identifies a set of envelopes, to check whether a decision is based on the same set. */
export const setOf = (competing: readonly Pick<Envelope, 'innerHash' | 'outerHash'>[]): string =>
  competing
    .map((envelope) => hashesOf(envelope).join(' '))
    .sort()
    .join(', ')
