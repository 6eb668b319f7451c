import { sql } from 'drizzle-orm'
import {
  bigint,
  check,
  customType,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  unique,
} from 'drizzle-orm/pg-core'
import { instant, oneOf } from './columns.ts'

const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({
  dataType: () => 'bytea',
  // node-postgres sends a Buffer as bytea, and any other array as JSON.
  toDriver: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength),
})

/**
 * The position of an event in its ledger: SEP-35's total order ID, ledger (32 bits), transaction (20) and operation (12).
 */
const toid = () => bigint('toid', { mode: 'bigint' }).notNull()

export const STREAM_ROLES = ['token', 'registry'] as const

/** The events of one contract: the token, or a verifier or auditor registry that it has named. */
export const archiveStreams = pgTable(
  'archive_streams',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    /** the token whose archive it belongs to */
    token: text('token').notNull(),
    contract: text('contract').notNull(),
    role: text('role', { enum: STREAM_ROLES }).notNull(),
    /** hash of the first ledger that was ingested (64 hex digits), which identifies the archive; null for a registry */
    generation: text('generation'),
    /**
     * until then one process ingests the stream; this only avoids duplicate work, since the ranges keep the rows
     * correct
     */
    claimedUntil: instant('claimed_until'),
    /**
     * the second reading in progress: its last ledger, the ledger of the network from which on it may begin, and how far it
     * has come. Over when it has come to its last ledger
     */
    rereadTo: integer('reread_to').notNull().default(0),
    rereadAfter: integer('reread_after').notNull().default(0),
    rereadThrough: integer('reread_through').notNull().default(0),
  },
  (table) => [
    unique('archive_streams_contract').on(table.token, table.contract),
    check('archive_streams_generation', sql`(${table.role} = 'token') = (${table.generation} is not null)`),
    check('archive_streams_role', oneOf(table.role, STREAM_ROLES)),
  ],
)

/** Ledgers of a stream whose events are all stored, both ends included. Ledgers between two ranges are a gap. */
export const archiveRanges = pgTable(
  'archive_ranges',
  {
    stream: integer('stream')
      .notNull()
      .references(() => archiveStreams.id),
    fromLedger: integer('from_ledger').notNull(),
    /** `from_ledger` - 1 while nothing is stored yet */
    throughLedger: integer('through_ledger').notNull(),
    /** hashes of both ledgers (64 hex digits): a different hash on the network means that it was reset */
    fromHash: text('from_hash').notNull(),
    throughHash: text('through_hash').notNull(),
    /** when the last ledger closed, unix seconds: a lower ledger that closed later belongs to another network */
    throughClosedAt: bigint('through_closed_at', { mode: 'number' }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.stream, table.fromLedger] }),
    check('archive_ranges_order', sql`${table.throughLedger} >= ${table.fromLedger} - 1`),
  ],
)

/** Ledgers of a stream that were read a second time, later, with exactly the stored events: their pages can't change. */
export const archiveFinalRanges = pgTable(
  'archive_final_ranges',
  {
    stream: integer('stream')
      .notNull()
      .references(() => archiveStreams.id),
    fromLedger: integer('from_ledger').notNull(),
    throughLedger: integer('through_ledger').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.stream, table.fromLedger] }),
    check('archive_final_ranges_order', sql`${table.throughLedger} >= ${table.fromLedger}`),
  ],
)

/** The contract events of a stream, as the network emitted them. The service never changes or deletes a row. */
export const archiveEvents = pgTable(
  'archive_events',
  {
    stream: integer('stream')
      .notNull()
      .references(() => archiveStreams.id),
    toid: toid(),
    /** counted over all contract events of the operation, including those of other contracts */
    eventIndex: integer('event_index').notNull(),
    /** when its ledger closed, unix seconds */
    closedAt: bigint('closed_at', { mode: 'number' }).notNull(),
    /** of the transaction, the outer one for a fee bump; 32 bytes */
    txHash: bytea('tx_hash').notNull(),
    /** the symbol of the first topic; empty if that isn't a symbol */
    type: text('type').notNull(),
    /** XDR of an scvVec of the topics */
    topics: bytea('topics').notNull(),
    /** XDR of an ScVal */
    data: bytea('data').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.stream, table.toid, table.eventIndex] }),
    index('archive_events_transaction').on(table.txHash),
  ],
)

/**
 * How an event affects an account's balance. `checkpoint`: it contains the account's whole spendable balance. `anchor`:
 * it leaves the receiving balance empty, so a replay of that balance starts there.
 */
export const EVENT_ROLES = ['checkpoint', 'anchor'] as const
export type EventRole = (typeof EVENT_ROLES)[number]

/** The accounts named in the topics of each event, in ledger order. */
export const archiveEventAccounts = pgTable(
  'archive_event_accounts',
  {
    stream: integer('stream').notNull(),
    /** G… or C… */
    account: text('account').notNull(),
    toid: toid(),
    eventIndex: integer('event_index').notNull(),
    role: text('role', { enum: EVENT_ROLES }),
  },
  (table) => [
    primaryKey({ columns: [table.stream, table.account, table.toid, table.eventIndex] }),
    index('archive_event_accounts_role')
      .on(table.stream, table.account, table.role, table.toid, table.eventIndex)
      .where(sql`${table.role} is not null`),
    foreignKey({
      name: 'archive_event_accounts_event',
      columns: [table.stream, table.toid, table.eventIndex],
      foreignColumns: [archiveEvents.stream, archiveEvents.toid, archiveEvents.eventIndex],
    }),
    check('archive_event_accounts_role', oneOf(table.role, EVENT_ROLES)),
  ],
)

/**
 * The payloads of calls that events omit. The owner of a delegation needs them to read the payments from it. A row is
 * inserted with its event. `payload` is null until it is fetched, and stays null if it is `lost`.
 */
export const archivePayloads = pgTable(
  'archive_payloads',
  {
    stream: integer('stream').notNull(),
    toid: toid(),
    eventIndex: integer('event_index').notNull(),
    status: text('status', { enum: ['wanted', 'stored', 'lost'] })
      .notNull()
      .default('wanted'),
    /** how many times no node had the transaction: the least tried are fetched first */
    tried: integer('tried').notNull().default(0),
    /** XDR of the ScVal under `payload` in the call's data */
    payload: bytea('payload'),
  },
  (table) => [
    primaryKey({ columns: [table.stream, table.toid, table.eventIndex] }),
    foreignKey({
      name: 'archive_payloads_event',
      columns: [table.stream, table.toid, table.eventIndex],
      foreignColumns: [archiveEvents.stream, archiveEvents.toid, archiveEvents.eventIndex],
    }),
    index('archive_payloads_wanted').on(table.stream, table.tried, table.toid).where(sql`${table.status} = 'wanted'`),
    check('archive_payloads_status', oneOf(table.status, ['wanted', 'stored', 'lost'])),
    check('archive_payloads_stored', sql`(${table.status} = 'stored') = (${table.payload} is not null)`),
  ],
)
