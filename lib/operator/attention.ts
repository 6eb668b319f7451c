/** A name that leads to its page. */
export interface NamedRecord {
  id: string
  name: string
}

/** How many contractors are told by name; the rest is counted. */
export const NAMES_SHOWN = 3

/** Something that a person has to see to, or has to know of. */
export interface Attention {
  key: string
  level: 'bad' | 'busy'
  /** since when; undefined for what has no beginning, such as a missing key */
  since: Date | undefined
  what: string
  /** why it is so, as far as that is known; empty where `what` says it */
  why: string
  /** one line of what to do; it names who does it where that is not the operator */
  remedy: string
  actor: 'operator' | 'customer'
  organisation?: NamedRecord
  batch?: NamedRecord
  contractors?: readonly NamedRecord[]
  /** how many contractors more than those */
  moreContractors?: number
  /** where it is shown */
  page: string
}
