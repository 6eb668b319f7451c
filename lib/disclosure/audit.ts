import { type AuditedBalance, type ChannelReading, readPayee, readPayer } from './auditor-channels.ts'
import { Books, type OpenDelegation } from './books.ts'
import type { HistoryEvent } from './history.ts'
import { decodeEvent, publicAmountIn } from './payment.ts'

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

export interface Audit extends Pick<Books, 'accounts' | 'problems'> {
  lines: AuditLine[]
  /** the delegations that have not been revoked */
  delegations: OpenDelegation[]
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
    books.turnTo(event)
    for (const entry of decoded ? enter(books, secrets, decoded) : []) {
      const { account, ...rest } = entry
      const { spendable, receiving } = books.of(account)
      const { closedAt: date, transaction } = event
      const balances = { spendable: spendable.opening?.value, receiving: receiving.opening?.value }
      lines.push({ date, transaction, account, ...rest, ...balances })
    }
    onProgress(index + 1, events.length)
  }
  const { accounts, problems } = books
  return { lines, accounts, problems, delegations: [...books.delegations.values()] }
}

type Entry = Pick<AuditLine, 'account' | 'operation' | 'counterparty' | 'amount' | 'note'>
type Decoded = NonNullable<ReturnType<typeof decodeEvent>>

/** Records an event. @returns its lines, for each account that it changes */
function enter(books: Books, secrets: readonly bigint[], event: Decoded): Entry[] {
  const { name: operation, addresses, fields } = event
  const [first = '', second = '', third = ''] = addresses
  const publicAmount = publicAmountIn(fields)
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
      books.clawBack(first, publicAmount)
      return [{ account: first, operation, amount: publicAmount }]
    case 'withdraw': {
      const payer = readPayer(secrets, fields)
      books.spend(first, publicAmount, payer?.balance)
      const note = payer ? undefined : UNREAD
      return [{ account: first, operation, counterparty: second, amount: publicAmount, note }]
    }
    case 'set_spender': {
      const payer = readPayer(secrets, fields, second)
      books.spend(first, payer?.amount, payer?.balance)
      books.delegate(first, second, payer?.allowance)
      return [
        { account: first, operation, counterparty: second, amount: payer?.amount, note: payer ? undefined : UNREAD },
      ]
    }
    case 'revoke_spender':
      return [revoke(books, first, second)]
    case 'transfer': {
      const payer = readPayer(secrets, fields)
      books.spend(first, payer?.amount, payer?.balance)
      return pay(books, { operation, from: first, to: second, payer, payee: readPayee(secrets, fields) })
    }
    case 'spender_transfer': {
      const payer = readPayer(secrets, fields)
      books.delegate(second, first, payer?.allowance, payer?.amount)
      return pay(books, { operation, from: second, to: third, payer, payee: readPayee(secrets, fields) })
    }
    default:
      return []
  }
}

/**
 * The payer's line and the payee's, or the only one of an account that paid itself. Their channels are compared where both
 * can be read.
 */
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
  if (differs) books.reject(from)
  const noteOf = (read: unknown) => (differs ? DIFFERENT : read ? undefined : UNREAD)
  if (from === to) {
    const amount = payer?.amount ?? payee?.value
    return [{ account: from, operation: `${operation} to itself`, counterparty: to, amount, note: noteOf(payer) }]
  }
  return [
    { account: from, operation: `${operation} sent`, counterparty: to, amount: payer?.amount, note: noteOf(payer) },
    { account: to, operation: `${operation} received`, counterparty: from, amount: payee?.value, note: noteOf(payee) },
  ]
}

function revoke(books: Books, owner: string, spender: string): Entry {
  const rest = books.revoke(owner, spender)
  const note = rest ? undefined : UNKNOWN_ALLOWANCE
  return { account: owner, operation: 'revoke_spender', counterparty: spender, amount: rest?.value, note }
}
