import type { BatchStatus, ContractorStatus, PayoutStatus } from '#drizzle/schema/directory.ts'
import type { Source } from './source.ts'

/**
 * The organisations of a seeded service, the emails of their users, and the names of their batches. The second also has
 * a wallet.
 */
export const ORGANISATIONS = [
  { name: 'Northwind Robotics', email: 'ada@northwind.example', hasWallet: false, batch: 'Engineering' },
  { name: 'Lighthouse Bakery', email: 'tessa@lighthouse.example', hasWallet: true, batch: 'Shop floor' },
  { name: 'Studio Meridian', email: 'mira@meridian.example', hasWallet: false, batch: 'Freelancers' },
] as const

export const PEOPLE = [
  'Ada Lovelace',
  'Grace Hopper',
  'Alan Turing',
  'Katherine Johnson',
  'Edsger Dijkstra',
  'Radia Perlman',
  'Barbara Liskov',
  'Donald Knuth',
  'Frances Allen',
  'Tony Hoare',
  'Margaret Hamilton',
  'Niklaus Wirth',
  'Hedy Lamarr',
  'Claude Shannon',
  'Lynn Conway',
  'Edgar Codd',
] as const

/** The status of each contractor of an organisation, in their order; the rest are ready. */
export const CONTRACTOR_STATUSES_AT_THE_END: readonly ContractorStatus[] = [
  'onboarding',
  'invited',
  'invited',
  'inactive',
]

/** How many days ago contractors were invited, by their place, and accepted. An invite is valid for 14 days. */
export const INVITES: ReadonlyMap<number, { invited: number; accepted?: number }> = new Map([
  ...[0, 1, 2, 3].map((place) => [place, { invited: 25, accepted: 24 }] as const),
  [12, { invited: 12, accepted: 11 }],
  [13, { invited: 9 }],
  [14, { invited: 20 }],
])

/** A recent batch: the states of its payouts, and how long ago (minutes) it started. */
export interface StoryBatch {
  /** the index in ORGANISATIONS */
  organisation: number
  name: string
  status: BatchStatus
  minutes: number
  payouts: readonly PayoutStatus[]
}

const times = (count: number, status: PayoutStatus): PayoutStatus[] => new Array<PayoutStatus>(count).fill(status)

/** One batch in every state, and the batches that need attention. */
export const TODAY: readonly StoryBatch[] = [
  { organisation: 0, name: 'November bonus', status: 'draft', minutes: 25, payouts: times(4, 'draft') },
  { organisation: 2, name: 'Contractors, week 47', status: 'ready', minutes: 40, payouts: times(7, 'ready') },
  {
    organisation: 0,
    name: 'Engineering, November',
    status: 'started',
    minutes: 4,
    payouts: [...times(6, 'paid'), ...times(5, 'ready')],
  },
  {
    organisation: 1,
    name: 'Night shift',
    status: 'started',
    minutes: 190,
    payouts: [...times(3, 'paid'), ...times(4, 'ready')],
  },
  { organisation: 2, name: 'Illustrators', status: 'started', minutes: 31, payouts: [...times(2, 'paid'), 'pending'] },
  {
    organisation: 1,
    name: 'Weekend shift',
    status: 'failed',
    minutes: 320,
    payouts: [...times(5, 'paid'), 'failed', 'failed'],
  },
  {
    organisation: 0,
    name: 'Expenses, October',
    status: 'completed',
    minutes: 75,
    payouts: [...times(8, 'paid'), 'canceled'],
  },
]

const DAY_MINUTES = 24 * 60

/** The batches of a week, of today, and `more` small earlier ones. */
export function planBatches(source: Source, more: number): StoryBatch[] {
  const week = Array.from({ length: 7 * ORGANISATIONS.length }, (_, index): StoryBatch => {
    const organisation = index % ORGANISATIONS.length
    const days = 1 + Math.floor(index / ORGANISATIONS.length)
    return {
      organisation,
      name: `${ORGANISATIONS[organisation]?.batch}, ${days === 1 ? 'yesterday' : `${days} days ago`}`,
      status: 'completed',
      minutes: days * DAY_MINUTES + source.number(600) - 300,
      payouts: times(5 + source.number(6), 'paid'),
    }
  })
  const small = Array.from({ length: more }, (_, index): StoryBatch => {
    const hasFailed = index % 500 === 499
    return {
      organisation: 0,
      name: `Small batch ${index + 1}`,
      status: hasFailed ? 'failed' : 'completed',
      minutes: 10 * DAY_MINUTES + index,
      payouts: [hasFailed ? 'failed' : 'paid'],
    }
  })
  return [...small, ...week, ...TODAY].sort((one, other) => other.minutes - one.minutes)
}

/** Why the sponsor refused transfers in the last days. */
export const REASONS = ['expires-too-late', 'memo', 'quota-transfers', 'would-fail', 'expires-too-late', 'function']
