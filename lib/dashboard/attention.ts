/** A name that leads to its page. */
export interface NamedRecord {
  id: string
  name: string
}

/** A user of an organisation: reached by its email, if that is known, or else by its wallet. */
export interface OrganisationUser {
  /** the account of a wallet, or the name that the identity provider has for the user */
  sub: string
  email: string | null
}

/** How many contractors are named; the others are counted. */
export const NAMES_SHOWN = 4

/** Older failures are only counted, and not listed one by one: an employer may never send them again (ms). */
export const TOLD_FOR_MS = 7 * 24 * 3_600_000

/** Something that a person has to see to, or has to know of. */
export interface Attention {
  key: string
  level: 'bad' | 'late'
  /** since when; undefined for what has no beginning, such as a missing key */
  since: Date | undefined
  what: string
  /** why it is so, as far as that is known; empty where `what` says it */
  why: string
  /** one line of what to do */
  remedy: string
  /** the one who has to act; if it is the employer, the operator only has to know */
  actor: 'operator' | 'employer'
  organisation?: NamedRecord
  /** how its users are reached */
  users?: readonly OrganisationUser[]
  batch?: NamedRecord
  contractors?: readonly NamedRecord[]
  /** how many contractors more than those */
  moreContractors?: number
  /** the event that ends it, and the time at which it leaves the list even without that event */
  until?: { event: string; at: Date }
  /** the page that shows it */
  page: string
}
