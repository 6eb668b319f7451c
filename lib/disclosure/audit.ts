import { addOpenings, NOTHING, type Opening, opens } from '#lib/wallet/commitment.ts'
import { type AuditedBalance, type ChannelReading, readPayee, readPayer } from './auditor-channels.ts'
import type { HistoryEvent } from './history.ts'
import { decodeEvent } from './payment.ts'

/** One operation of an account, as the auditor reads it. */
export interface AuditLine {
  date: string
  account: string
  operation: string
  counterparty?: string | undefined
  transaction: string
  /** base units; undefined if it cannot be read, or if the operation has none */
  amount?: bigint | undefined
  /** after the operation; undefined while it is unknown */
  spendable: bigint | undefined
  receiving: bigint | undefined
  /** why something cannot be read */
  note?: string | undefined
}

/** The last known openings of an account. */
export interface AuditedAccount {
  spendable: Opening | undefined
  receiving: Opening | undefined
}

/** The rest of a delegation, as far as the auditor could read it. */
export interface AuditedDelegation {
  owner: string
  spender: string
  rest: Opening | undefined
}

export interface Audit {
  lines: AuditLine[]
  accounts: Map<string, AuditedAccount>
  /** the delegations that have not been revoked */
  delegations: AuditedDelegation[]
}

const UNREAD = 'encrypted to another auditor, or to a key that was not given'
const UNKNOWN_ALLOWANCE = 'the opening of the delegation is unavailable until the next checkpoint'
const DIFFERENT = 'the two channels give different amounts'

/**
 * Reads every event of the token with an auditor's secrets: all keys that it has had, since a key reads only what was
 * encrypted to it. The events begin with the registration of each account, or its balances are unknown until a checkpoint.
 * @param onProgress called with the number of events read and of all
 */
export function readAudit(
  events: readonly HistoryEvent[],
  secrets: readonly bigint[],
  onProgress: (done: number, total: number) => void = () => undefined,
): Audit {
  const books = new Books()
  const lines: AuditLine[] = []
  for (const [index, event] of events.entries()) {
    const decoded = decodeEvent(event.topics, event.data)
    for (const entry of decoded ? enter(books, secrets, decoded) : []) {
      const { account, ...rest } = entry
      const { spendable, receiving } = books.of(account)
      const { closedAt: date, transaction } = event
      lines.push({ date, transaction, account, ...rest, spendable: spendable?.value, receiving: receiving?.value })
    }
    onProgress(index + 1, events.length)
  }
  return { lines, accounts: books.accounts, delegations: [...books.delegations.values()] }
}

type Entry = Pick<AuditLine, 'account' | 'operation' | 'counterparty' | 'amount' | 'note'>
type Decoded = NonNullable<ReturnType<typeof decodeEvent>>

/** The balances so far, and the rest of each delegation. */
class Books {
  readonly accounts = new Map<string, AuditedAccount>()
  readonly delegations = new Map<string, AuditedDelegation>()

  of(account: string): AuditedAccount {
    return this.accounts.get(account) ?? { spendable: undefined, receiving: undefined }
  }

  register(account: string): void {
    this.accounts.set(account, { spendable: NOTHING, receiving: NOTHING })
  }

  /** An unknown amount makes the receiving balance unknown until the next merge. */
  receive(account: string, received: Opening | undefined): void {
    const { spendable, receiving } = this.of(account)
    this.accounts.set(account, { spendable, receiving: sum(receiving, received) })
  }

  merge(account: string): void {
    const { spendable, receiving } = this.of(account)
    this.accounts.set(account, { spendable: sum(spendable, receiving), receiving: NOTHING })
  }

  delegate(owner: string, spender: string, rest: Opening | undefined): void {
    this.delegations.set(`${owner} ${spender}`, { owner, spender, rest })
  }

  /** Ends a delegation. @returns the rest of it */
  revoke(owner: string, spender: string): Opening | undefined {
    const rest = this.delegations.get(`${owner} ${spender}`)?.rest
    this.delegations.delete(`${owner} ${spender}`)
    return rest
  }

  /** An outgoing operation contains the whole balance, if the auditor can read it. */
  checkpoint(account: string, spendable: Opening | undefined): void {
    this.accounts.set(account, { ...this.of(account), spendable })
  }
}

const sum = (one: Opening | undefined, other: Opening | undefined): Opening | undefined =>
  one && other && addOpenings(one, other)

/** Records an event. @returns its lines, one for each account that it changes */
function enter(books: Books, secrets: readonly bigint[], event: Decoded): Entry[] {
  const { name: operation, addresses, fields } = event
  const [first = '', second = '', third = ''] = addresses
  const publicAmount = typeof fields.amount === 'bigint' ? fields.amount : undefined
  switch (operation) {
    case 'register':
      books.register(first)
      return [{ account: first, operation }]
    case 'merge':
      books.merge(first)
      return [{ account: first, operation }]
    case 'deposit':
      books.receive(second, publicAmount === undefined ? undefined : { value: publicAmount, blinding: 0n })
      return [{ account: second, operation, counterparty: first, amount: publicAmount }]
    case 'clawback':
      return [clawBack(books, first, publicAmount)]
    case 'withdraw': {
      const payer = readPayer(secrets, fields)
      books.checkpoint(first, payer?.balance)
      const note = payer ? undefined : UNREAD
      return [{ account: first, operation, counterparty: second, amount: publicAmount, note }]
    }
    case 'set_spender': {
      const payer = readPayer(secrets, fields, second)
      books.checkpoint(first, payer?.balance)
      books.delegate(first, second, payer?.allowance)
      return [
        { account: first, operation, counterparty: second, amount: payer?.amount, note: payer ? undefined : UNREAD },
      ]
    }
    case 'revoke_spender':
      return [revoke(books, first, second)]
    case 'transfer': {
      const payer = readPayer(secrets, fields)
      books.checkpoint(first, payer?.balance)
      return pay(books, { operation, from: first, to: second, payer, payee: readPayee(secrets, fields) })
    }
    case 'spender_transfer': {
      const payer = readPayer(secrets, fields)
      books.delegate(second, first, payer?.allowance)
      return pay(books, { operation, from: second, to: third, payer, payee: readPayee(secrets, fields) })
    }
    default:
      return []
  }
}

/** The payer's line and the payee's. Their channels are compared where both can be read. */
function pay(
  books: Books,
  payment: {
    operation: string
    from: string
    to: string
    payer: AuditedBalance | undefined
    payee: ChannelReading | undefined
  },
): Entry[] {
  const { operation, from, to, payer, payee } = payment
  books.receive(to, payee)
  const differs = payer?.amount !== undefined && payee !== undefined && payer.amount !== payee.value
  const noteOf = (read: unknown) => (differs ? DIFFERENT : read ? undefined : UNREAD)
  return [
    { account: from, operation: `${operation} sent`, counterparty: to, amount: payer?.amount, note: noteOf(payer) },
    { account: to, operation: `${operation} received`, counterparty: from, amount: payee?.value, note: noteOf(payee) },
  ]
}

/** Adds the rest of the delegation. Without its last event, the balance is unknown from this point. */
function revoke(books: Books, owner: string, spender: string): Entry {
  const rest = books.revoke(owner, spender)
  books.checkpoint(owner, sum(books.of(owner).spendable, rest))
  const note = rest ? undefined : UNKNOWN_ALLOWANCE
  return { account: owner, operation: 'revoke_spender', counterparty: spender, amount: rest?.value, note }
}

/** A clawback merges, and then subtracts a public amount. */
function clawBack(books: Books, account: string, amount: bigint | undefined): Entry {
  books.merge(account)
  const { spendable } = books.of(account)
  const isKnown = spendable !== undefined && amount !== undefined
  books.checkpoint(account, isKnown ? { ...spendable, value: spendable.value - amount } : undefined)
  return { account, operation: 'clawback', amount }
}

/**
 * The accounts whose balances differ from the commitments on the ledger, or are unknown.
 * @param entries the accounts as they are now
 */
export function checkAudit(
  { accounts }: Audit,
  entries: ReadonlyMap<string, { spendable: Uint8Array; receiving: Uint8Array }>,
): { account: string; problem: string }[] {
  return [...accounts].flatMap(([account, known]) => {
    const entry = entries.get(account)
    if (!entry) return []
    const problems = (['spendable', 'receiving'] as const).flatMap((part) => {
      const opening = known[part]
      if (!opening) return [`the ${part} balance is unknown`]
      return opens(opening, entry[part]) ? [] : [`the ${part} balance is not that of the ledger`]
    })
    return problems.map((problem) => ({ account, problem }))
  })
}

/**
 * The delegations whose rest differs from the commitment on the ledger, or is unknown.
 * @param entries of `delegations` in their order, undefined where the ledger has none
 */
export function checkDelegations(
  delegations: readonly AuditedDelegation[],
  entries: readonly ({ allowance_commitment: Uint8Array } | undefined)[],
): { account: string; problem: string }[] {
  return delegations.flatMap(({ owner, spender, rest }, index) => {
    const entry = entries[index]
    if (!entry || (rest && opens(rest, entry.allowance_commitment))) return []
    const fault = rest ? 'is not that of the ledger' : 'is unknown'
    return [{ account: owner, problem: `the rest of the delegation to ${spender} ${fault}` }]
  })
}
