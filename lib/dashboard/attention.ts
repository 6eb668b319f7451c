import type { SQL } from 'drizzle-orm'
import type { AnyPgColumn } from 'drizzle-orm/pg-core'
import type { acknowledgements } from '#drizzle/schema/audit.ts'
import type { PayoutStatus } from '#drizzle/schema/directory.ts'
import type { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import type { AcknowledgeableCondition } from './acknowledgements.ts'

/** A name that links to the record's page. */
export interface NamedRecord {
  id: string
  name: string
}

export interface OrganisationUser {
  /** a wallet's account, or the identity provider's id of the user */
  sub: string
  email: string | null
}

/** Who acknowledged a condition, when and why. */
type Acknowledgement = Pick<typeof acknowledgements.$inferSelect, 'note' | 'operator' | 'at'>

/** The maximum number of items of each condition that are listed. */
export const MAX_LISTED = 20

/** The maximum number of contractors that an item names. It counts the rest. */
export const NAMES_SHOWN = 4

/** What is the matter, and who has to do what. */
export interface Notice {
  /** the condition in a few words. The title puts the names of the records before it: 'Night shift · Acme: 4 of 7 unpaid' */
  what: string
  /** whether the condition has lasted since its time, so that the title shows for how long */
  isOngoing?: true
  /** the facts behind it; empty if unknown or if `what` includes them */
  why: string
  /** the same for each record that it concerns, a sentence each */
  causes?: readonly string[]
  /** the next step, in one sentence without conditions */
  remedy: string
  /** the same step, as an email asks the employer for it */
  request?: string | undefined
  /** set instead of `request` if the stored contact is not to be trusted: the words for another one */
  telling?: string
  /** set if the employer is asked to pay again, which is not safe while a channel's payments are unknown */
  asksToPay?: true
  /** who has to act; an operator only needs to know about an employer's items */
  actor: 'operator' | 'employer'
  contractors?: readonly NamedRecord[]
  /** the addresses of payees who are no contractors of the organisation */
  recipients?: readonly string[]
  /** how many payees are neither in `contractors` nor in `recipients` */
  moreContractors?: number
}

/** Something that someone must handle or should know about. */
export interface Attention extends Notice {
  key: string
  level: 'bad' | 'late'
  /** undefined for a condition without a start time, such as a missing key */
  since: Date | undefined
  /** what the item is about, if neither a batch nor an organisation names it */
  name?: string
  organisation?: NamedRecord
  /** the organisation's users, to contact them */
  users?: readonly OrganisationUser[]
  batch?: NamedRecord
  /** whom a condition of the service itself concerns, in words */
  affected?: string
  /** the condition of a record, and its last event: it can be acknowledged until something new happens */
  acknowledgeable?: { condition: AcknowledgeableCondition; subject: string; lastEvent: Date }
  /** set on the page of a record: the overview lists no acknowledged items */
  acknowledgement?: Acknowledgement | null
  /** whether an operator can let payments go on */
  isStop?: true
  /** the page with the details; empty without one */
  page: string
}

/** A record that needs attention, and the records that it belongs to. */
export interface AttentionRow {
  condition: AcknowledgeableCondition
  id: string
  lastEvent: Date
  acknowledgement: Acknowledgement | null
  batch: (NamedRecord & { payoutCount: number; settledCount: number; failedCount: number }) | null
  organisation: NamedRecord | null
  /** the user of a job or transfer, if no organisation is known */
  user: OrganisationUser | null
  contractor: NamedRecord | null
  payoutStatus: PayoutStatus | null
  transfer:
    | (Pick<typeof transfers.$inferSelect, 'kind' | 'recipient' | 'createdAt'> & { refusalCode: string | null })
    | null
}

/** A condition of a record: which records have it, and what an item says about each. */
export interface RecordCondition {
  level: Attention['level']
  /** the tab of the record's page that lists its cause */
  tab?: string
  /** the condition over the record's table */
  holds: (now: Date) => SQL | undefined
  /** which records are listed if there are more than MAX_LISTED */
  order: readonly (SQL | AnyPgColumn)[]
  /** Reads the details of records that have the condition. The result is undefined for a record that has lost it since. */
  describe: (
    db: Database,
    ids: string[],
    rows: readonly AttentionRow[],
  ) => Promise<(row: AttentionRow) => (Notice & { since?: Date }) | null | undefined>
}
