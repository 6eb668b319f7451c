import { formatUnits } from '#lib/text/money.ts'
import { addOpenings, NOTHING, type Opening, opens } from '#lib/wallet/commitment.ts'
import type { LedgerEvent } from './payment.ts'

/** The events that an amount follows from: since ledger `from`, whose event gave an amount by itself. */
interface Evidence {
  from: number
  sources: readonly string[]
}

/** One of an account's two balances, as its events imply it. */
interface Pot extends Evidence {
  /** undefined while it is unknown */
  opening: Opening | undefined
  /** what it holds at least, in base units */
  least: bigint
}

/** The balances of an account. */
interface Book {
  spendable: Pot
  receiving: Pot
}

/** The rest of a delegation. */
export interface OpenDelegation extends Evidence {
  owner: string
  spender: string
  rest: Opening | undefined
}

/**
 * `isContradiction`: the events cannot all be true, or that could not be found out. Otherwise something is unknown, and was not
 * compared.
 */
export interface Problem {
  account: string
  problem: string
  isContradiction: boolean
}

/** The ledger of an event, and where it was read. */
type Place = Pick<LedgerEvent, 'ledger' | 'source'>

/**
 * Follows the balances of accounts through their events. Each outgoing operation gives the whole spendable balance
 * afterwards: together with its amount, it must be what the events before it add up to. A source that invents, changes or
 * withholds an event contradicts the next such operation, or the commitment on the ledger (`compareBooks`).
 */
export class Books {
  readonly accounts = new Map<string, Book>()
  readonly delegations = new Map<string, OpenDelegation>()
  private readonly found: Problem[] = []
  /** by account, the checkpoints that could not be compared with the events before them */
  private readonly skipped = new Map<string, { count: number; from: number; to: number }>()
  private place: Place = { ledger: 0, source: '' }

  get problems(): Problem[] {
    const skipped = [...this.skipped].map(([account, { count, from, to }]) =>
      unknown(
        account,
        `from ledger ${from} to ledger ${to}, ${count} balance${count === 1 ? '' : 's'} could not be compared with the events before: an amount cannot be read`,
      ),
    )
    return [...this.found, ...skipped]
  }

  /** Names the event that the next calls are about. */
  turnTo({ ledger, source }: Place): void {
    this.place = { ledger, source }
  }

  of(account: string): Book {
    return this.accounts.get(account) ?? { spendable: this.pot(undefined), receiving: this.pot(undefined) }
  }

  /** An account is registered once, and has no other event before. */
  register(account: string): void {
    if (this.accounts.has(account)) this.reject(account)
    else this.accounts.set(account, { spendable: this.pot(NOTHING), receiving: this.pot(NOTHING) })
  }

  /** An unknown amount makes the receiving balance unknown until the next merge. */
  receive(account: string, received: Opening | undefined): void {
    const { spendable, receiving } = this.of(account)
    this.accounts.set(account, { spendable, receiving: add(receiving, this.pot(received)) })
  }

  merge(account: string): void {
    const { spendable, receiving } = this.of(account)
    this.accounts.set(account, { spendable: add(spendable, receiving), receiving: this.pot(NOTHING) })
  }

  /** An outgoing operation. `after`: the whole spendable balance that its event gives, undefined if it is unreadable. */
  spend(account: string, amount: bigint | undefined, after: Opening | undefined): void {
    const book = this.of(account)
    const { opening, least } = book.spendable
    const before = opening?.value ?? least
    const isExact = opening !== undefined && after !== undefined && amount !== undefined
    const had = (after?.value ?? 0n) + (amount ?? 0n)
    if (opening ? before < had || (isExact && before > had) : after && amount !== undefined && before > had) {
      this.contradict(account, 'spendable', had)
    } else if (opening && !isExact) this.skip(account)
    const rest = amount === undefined || before < amount ? 0n : before - amount
    this.accounts.set(account, { ...book, spendable: { ...this.pot(after), least: after?.value ?? rest } })
  }

  /** A delegation of which `rest` is left, after a payment of `amount` from it if there is one. */
  delegate(owner: string, spender: string, rest: Opening | undefined, amount?: bigint): void {
    const key = `${owner} ${spender}`
    const before = this.delegations.get(key)
    if (before?.rest && rest && amount !== undefined && before.rest.value !== rest.value + amount)
      this.contradictRest(owner, spender)
    const { ledger, source } = this.place
    const { from, sources } = before ?? { from: ledger, sources: [] }
    this.delegations.set(key, { owner, spender, rest, from, sources: [...new Set([...sources, source])] })
  }

  /** Ends a delegation, and returns its rest to the balance. `rest`: what the event gives, by default what is known. */
  revoke(owner: string, spender: string, rest = this.restOf(owner, spender)): Opening | undefined {
    const known = this.restOf(owner, spender)
    if (known && rest && known.value !== rest.value) this.contradictRest(owner, spender)
    this.delegations.delete(`${owner} ${spender}`)
    const { spendable, receiving } = this.of(owner)
    this.accounts.set(owner, { spendable: add(spendable, this.pot(rest)), receiving })
    return rest
  }

  restOf(owner: string, spender: string): Opening | undefined {
    return this.delegations.get(`${owner} ${spender}`)?.rest
  }

  /** A clawback merges, and then subtracts a public amount. */
  clawBack(account: string, amount: bigint | undefined): void {
    this.merge(account)
    const { spendable, receiving } = this.of(account)
    const { opening, least } = spendable
    if (opening && amount !== undefined && amount > opening.value) this.contradict(account, 'spendable', amount)
    const rest = opening && amount !== undefined ? { ...opening, value: opening.value - amount } : undefined
    const left = amount === undefined || least < amount ? 0n : least - amount
    this.accounts.set(account, { spendable: { ...spendable, opening: rest, least: left }, receiving })
  }

  /** Notes that the token never emits such an event. */
  reject(account: string): void {
    const { ledger, source } = this.place
    this.found.push(
      wrong(account, `an event of ledger ${ledger}, read from ${source}, is not one that the token emits`),
    )
  }

  /** A balance that the current event gives by itself, or a part of one. */
  private pot(opening: Opening | undefined): Pot {
    return { opening, least: opening?.value ?? 0n, from: this.place.ledger, sources: [this.place.source] }
  }

  private contradict(account: string, part: keyof Book, had: bigint): void {
    const { opening, least, from, sources } = this.of(account)[part]
    const sum = `${opening ? '' : 'at least '}${formatUnits(opening?.value ?? least)}`
    const problem = `the ${describeEvents(from, this.place.ledger, [...sources, this.place.source])} contradict each other: they add up to ${sum}, and the account had ${formatUnits(had)}`
    this.found.push(wrong(account, problem))
  }

  private contradictRest(owner: string, spender: string): void {
    const { ledger, source } = this.place
    const { from, sources } = this.delegations.get(`${owner} ${spender}`) ?? { from: ledger, sources: [] }
    const events = describeEvents(from, ledger, [...sources, source])
    this.found.push(wrong(owner, `the ${events} disagree about what is left of the delegation to ${spender}`))
  }

  private skip(account: string): void {
    const { ledger } = this.place
    const { count, from } = this.skipped.get(account) ?? { count: 0, from: ledger }
    this.skipped.set(account, { count: count + 1, from, to: ledger })
  }
}

const add = (one: Pot, other: Pot): Pot => ({
  opening: one.opening && other.opening && addOpenings(one.opening, other.opening),
  least: one.least + other.least,
  from: Math.min(one.from, other.from),
  sources: [...new Set([...one.sources, ...other.sources])],
})

/** What a reader of events has found, for comparison with the ledger. */
export type Balances = Pick<Books, 'accounts'> & { delegations: readonly OpenDelegation[] }

/**
 * Compares the balances and delegations with the ledger's commitments.
 * @param ledger the entries now, and the ledger up to which the events were read; delegations in their order, undefined
 *   where there is none
 * @param account the account that was asked about, which may have no event. Without one, all are compared
 */
export function compareBooks(
  { accounts, delegations }: Balances,
  ledger: {
    accounts: ReadonlyMap<string, { spendable: Uint8Array; receiving: Uint8Array }>
    delegations: readonly ({ allowance_commitment: Uint8Array } | undefined)[]
    through: number
  },
  account?: string,
): Problem[] {
  const { through } = ledger
  const silent =
    account === undefined || accounts.has(account)
      ? []
      : [unknown(account, `no event of the account was found through ledger ${through}: nothing was compared`)]
  const ofAccounts = [...accounts].flatMap(([account, book]) => {
    const entry = ledger.accounts.get(account)
    if (!entry) return [unknown(account, 'the ledger shows no such account: its balances were not compared')]
    return (['spendable', 'receiving'] as const).flatMap((part) => {
      const { opening, from, sources } = book[part]
      if (!opening) return [unknown(account, `the ${part} balance is unknown, and was not compared with the ledger’s`)]
      if (opens(opening, entry[part])) return []
      return [
        wrong(account, `the ${describeEvents(from, through, sources)} do not add up to the ledger’s ${part} balance`),
      ]
    })
  })
  const ofDelegations = delegations.flatMap(({ owner, spender, rest, from, sources }, index) => {
    const entry = ledger.delegations[index]
    if (entry && rest && opens(rest, entry.allowance_commitment)) return []
    const events = describeEvents(from, through, sources)
    if (!entry) return [wrong(owner, `the ${events} show a delegation to ${spender}, and the ledger has none`)]
    return rest
      ? [wrong(owner, `the ${events} do not add up to the ledger’s rest of the delegation to ${spender}`)]
      : [unknown(owner, `the rest of the delegation to ${spender} is unknown, and was not compared with the ledger’s`)]
  })
  return [...silent, ...ofAccounts, ...ofDelegations]
}

const wrong = (account: string, problem: string): Problem => ({ account, problem, isContradiction: true })
const unknown = (account: string, problem: string): Problem => ({ account, problem, isContradiction: false })

const describeEvents = (from: number, through: number, sources: readonly string[]): string =>
  `events from ledger ${from} to ledger ${through}, read from ${[...new Set(sources)].filter(Boolean).join(' and ')},`
