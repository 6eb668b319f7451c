import { sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  boolean,
  check,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  unique,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { instant, newest, oneOf, sequence } from './columns.ts'

/** The kinds of users: an account of the ledger, or a user of an identity provider. */
export const IDENTITY_KINDS = ['ledger', 'idp'] as const

export const CONTRACTOR_STATUSES = ['invited', 'onboarding', 'ready', 'inactive'] as const
export type ContractorStatus = (typeof CONTRACTOR_STATUSES)[number]

export const BATCH_STATUSES = ['draft', 'ready', 'started', 'completed', 'failed'] as const
export type BatchStatus = (typeof BATCH_STATUSES)[number]

export const PAYOUT_STATUSES = ['draft', 'ready', 'pending', 'paid', 'failed', 'canceled'] as const
export type PayoutStatus = (typeof PAYOUT_STATUSES)[number]

export const CURRENCIES = ['USDC'] as const

export const organisations = pgTable(
  'organisations',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    sequence: sequence(),
    name: text('name').notNull(),
    /** when a read of its contractors last looked up their registrations in the ledger */
    registrationsAskedAt: instant('registrations_asked_at'),
    /** the number of its batches, and of its contractors that are not removed; triggers count them (functions.sql) */
    batchCount: integer('batch_count').notNull().default(0),
    contractorCount: integer('contractor_count').notNull().default(0),
    /** whether its contractors get a mail when they are paid */
    notifyPayees: boolean('notify_payees').notNull().default(false),
    /** when its employer did the first thing that only an employer does */
    createdAt: instant('created_at').notNull().defaultNow(),
  },
  (table) => [
    index('organisations_newest').on(...newest(table)),
    index('organisations_name').on(prefixOf(table.name)),
    index('organisations_parts').using('gin', partsOf(table.name)),
  ],
)

/** An index column for the condition that a text begins with a prefix. */
const prefixOf = (text: AnyPgColumn) => sql`lower(${text}) text_pattern_ops`

/** A column of a GIN index for the condition that a text contains a part of at least three letters or digits (pg_trgm). */
const partsOf = (text: AnyPgColumn) => sql`lower(${text}) gin_trgm_ops`

/** The id that a record has in the employer's own system. */
const externalId = () => text('external_id')

/** Everybody who has signed in. A person may have several identities, which share the organisation that it has or may found. */
export const identities = pgTable(
  'identities',
  {
    kind: text('kind', { enum: IDENTITY_KINDS }).notNull(),
    sub: text('sub').notNull(),
    /** the identity provider; null for an account of the ledger */
    issuer: text('issuer'),
    /** of the person: the id of its organisation, which may not be founded yet */
    organisation: uuid('organisation').notNull().defaultRandom(),
    /** as the provider last verified it, case-folded */
    email: text('email'),
    /** when it was joined to the person's first identity; null for that one */
    joinedAt: instant('joined_at'),
    createdAt: instant('created_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.sub] }),
    check('identities_kind', oneOf(table.kind, IDENTITY_KINDS)),
    check('identities_issuer', sql`(${table.kind} = 'idp') = (${table.issuer} is not null)`),
    index('identities_organisation').on(table.organisation),
    index('identities_email').on(table.email.op('text_pattern_ops')),
    index('identities_parts').using('gin', table.email.op('gin_trgm_ops')),
  ],
)

export const contractors = pgTable(
  'contractors',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    sequence: sequence(),
    organisation: uuid('organisation')
      .notNull()
      .references(() => organisations.id),
    externalId: externalId(),
    name: text('name').notNull(),
    status: text('status', { enum: CONTRACTOR_STATUSES }).notNull(),
    email: text('email'),
    emailFolded: text('email_folded'),
    /** G… or C… */
    address: text('address'),
    /** public viewing key of the address from the ledger, 128 hex digits */
    pvk: text('pvk'),
    /** a decimal number as it was sent, at most 7 decimals */
    rateAmount: text('rate_amount'),
    rateCurrency: text('rate_currency', { enum: CURRENCIES }),
    /** incremented with every invite: a link with an earlier version is void */
    inviteVersion: integer('invite_version').notNull().default(0),
    inviteExpiresAt: instant('invite_expires_at').notNull(),
    inviteAcceptedAt: instant('invite_accepted_at'),
    linkedKind: text('linked_kind', { enum: IDENTITY_KINDS }),
    linkedSub: text('linked_sub'),
    lastPaidAt: instant('last_paid_at'),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** removed: hidden from all users, kept for its payouts */
    deletedAt: instant('deleted_at'),
  },
  (table) => [
    unique('contractors_of_organisation').on(table.organisation, table.id),
    foreignKey({
      name: 'contractors_linked_identity',
      columns: [table.linkedKind, table.linkedSub],
      foreignColumns: [identities.kind, identities.sub],
    }),
    check('contractors_status', oneOf(table.status, CONTRACTOR_STATUSES)),
    check('contractors_email', sql`(${table.email} is null) = (${table.emailFolded} is null)`),
    check(
      'contractors_pvk',
      sql`${table.pvk} is null or (${table.address} is not null and length(${table.pvk}) = 128)`,
    ),
    check('contractors_rate', sql`(${table.rateAmount} is null) = (${table.rateCurrency} is null)`),
    check('contractors_link', sql`(${table.linkedKind} is null) = (${table.linkedSub} is null)`),
    uniqueIndex('contractors_unique_email')
      .on(table.organisation, table.emailFolded)
      .where(sql`${table.deletedAt} is null`),
    uniqueIndex('contractors_unique_address')
      .on(table.organisation, table.address)
      .where(sql`${table.deletedAt} is null`),
    uniqueIndex('contractors_unique_external_id')
      .on(table.organisation, table.externalId)
      .where(sql`${table.externalId} is not null and ${table.deletedAt} is null`),
    // Includes the status, so that tabs can count an organisation's contractors from the index alone.
    index('contractors_newest')
      .on(table.organisation, ...newest(table), table.status)
      .where(sql`${table.deletedAt} is null`),
    index('contractors_removed').on(table.organisation).where(sql`${table.deletedAt} is not null`),
    index('contractors_newest_of_all')
      .on(...newest(table))
      .where(sql`${table.deletedAt} is null`),
    index('contractors_linked')
      .on(table.linkedKind, table.linkedSub)
      .where(sql`${table.deletedAt} is null and ${table.linkedKind} is not null`),
    index('contractors_newest_of_status')
      .on(table.status, ...newest(table))
      .where(sql`${table.deletedAt} is null`),
    index('contractors_name').on(prefixOf(table.name)).where(sql`${table.deletedAt} is null`),
    index('contractors_email').on(table.emailFolded.op('text_pattern_ops')).where(sql`${table.deletedAt} is null`),
    index('contractors_parts')
      .using('gin', partsOf(table.name), table.emailFolded.op('gin_trgm_ops'))
      .where(sql`${table.deletedAt} is null`),
    index('contractors_address').on(table.address).where(sql`${table.deletedAt} is null`),
    index('contractors_waiting').on(table.organisation, table.sequence).where(isWaiting(table)),
    index('contractors_waiting_of_all').on(table.sequence).where(isWaiting(table)),
  ],
)

/** Contractors that become ready once their address is registered. */
function isWaiting({ deletedAt, status, address }: Record<'deletedAt' | 'status' | 'address', AnyPgColumn>) {
  return sql`${deletedAt} is null and ${status} in ('invited', 'onboarding') and ${address} is not null`
}

/** Counters change in the same SQL transaction as a payout's status; canceled payouts are in none of them. */
export const batches = pgTable(
  'batches',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    sequence: sequence(),
    organisation: uuid('organisation')
      .notNull()
      .references(() => organisations.id),
    externalId: externalId(),
    name: text('name').notNull(),
    status: text('status', { enum: BATCH_STATUSES }).notNull().default('draft'),
    payoutCount: integer('payout_count').notNull().default(0),
    settledCount: integer('settled_count').notNull().default(0),
    failedCount: integer('failed_count').notNull().default(0),
    createdAt: instant('created_at').notNull().defaultNow(),
    startedAt: instant('started_at'),
    /** when one of its payouts was last sent, paid or failed; null until it starts */
    progressedAt: instant('progressed_at'),
    /** when one of its payouts last failed */
    failedAt: instant('failed_at'),
    completedAt: instant('completed_at'),
  },
  (table) => [
    unique('batches_of_organisation').on(table.organisation, table.id),
    check('batches_status', oneOf(table.status, BATCH_STATUSES)),
    check('batches_counts', sql`${table.settledCount} >= 0 and ${table.failedCount} >= 0`),
    check('batches_ended', sql`${table.settledCount} + ${table.failedCount} <= ${table.payoutCount}`),
    uniqueIndex('batches_unique_external_id')
      .on(table.organisation, table.externalId)
      .where(sql`${table.externalId} is not null`),
    index('batches_newest').on(table.organisation, ...newest(table)),
    index('batches_newest_of_all').on(...newest(table)),
    index('batches_newest_of_status').on(table.status, ...newest(table)),
    index('batches_name').on(prefixOf(table.name)),
    index('batches_parts').using('gin', partsOf(table.name)),
    index('batches_in_progress').on(table.progressedAt, table.sequence).where(sql`${table.status} = 'started'`),
    index('batches_with_failures')
      .on(table.failedAt.desc().nullsFirst(), table.id)
      .where(sql`${table.failedCount} > 0`),
    index('batches_unfinished').on(table.status).where(sql`${table.status} <> 'completed'`),
  ],
)

export const payouts = pgTable(
  'payouts',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    /** the order of instructions that were given at the same time */
    sequence: sequence(),
    organisation: uuid('organisation').notNull(),
    batch: uuid('batch').notNull(),
    contractor: uuid('contractor').notNull(),
    externalId: externalId(),
    status: text('status', { enum: PAYOUT_STATUSES }).notNull().default('draft'),
    /** the contractor's address when the payout was created; without one nothing can pay it */
    address: text('address'),
    /**
     * the amount as the client sealed it; never logged. Null once a payout is paid or canceled whose amount was sealed to a
     * relay
     */
    encryptedAmount: text('encrypted_amount'),
    /** the transfer that last claimed it */
    transfer: uuid('transfer'),
    txHash: text('tx_hash'),
    error: text('error'),
    createdAt: instant('created_at').notNull().defaultNow(),
    paidAt: instant('paid_at'),
  },
  (table) => [
    foreignKey({
      name: 'payouts_batch',
      columns: [table.organisation, table.batch],
      foreignColumns: [batches.organisation, batches.id],
    }),
    foreignKey({
      name: 'payouts_contractor',
      columns: [table.organisation, table.contractor],
      foreignColumns: [contractors.organisation, contractors.id],
    }),
    uniqueIndex('payouts_once').on(table.batch, table.contractor).where(sql`${table.status} <> 'canceled'`),
    // Of canceled payouts, too: repeating an import must not make them again.
    uniqueIndex('payouts_unique_external_id')
      .on(table.organisation, table.externalId)
      .where(sql`${table.externalId} is not null`),
    check('payouts_status', oneOf(table.status, PAYOUT_STATUSES)),
    check('payouts_paid', sql`(${table.status} = 'paid') = (${table.paidAt} is not null)`),
    check('payouts_paid_hash', sql`${table.status} <> 'paid' or ${table.txHash} is not null`),
    check('payouts_amount', sql`${table.status} in ('paid', 'canceled') or ${table.encryptedAmount} is not null`),
    check('payouts_pending', sql`${table.status} <> 'pending' or num_nulls(${table.transfer}, ${table.error}) < 2`),
    index('payouts_newest').on(table.organisation, ...newest(table)),
    // Most payouts are paid: a list of them reads `payouts_newest`, past the employer's unpaid ones.
    index('payouts_by_status')
      .on(table.organisation, table.status, ...newest(table))
      .where(sql`${table.status} <> 'paid'`),
    index('payouts_by_contractor').on(table.contractor, ...newest(table)),
    index('payouts_by_batch').on(table.batch, ...newest(table)),
    index('payouts_by_address').on(table.address),
    index('payouts_sequence').on(table.sequence),
    index('payouts_to_settle')
      .on(table.organisation, table.address, table.status, table.createdAt, table.sequence)
      .where(sql`${table.status} in ('ready', 'failed')`),
    // For the tabs of a batch, which count and list its unpaid payouts.
    index('payouts_unpaid')
      .on(table.status, table.batch, ...newest(table))
      .where(sql`${table.status} <> 'paid'`),
  ],
)
