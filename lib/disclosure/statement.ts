import type { Opening } from '#lib/wallet/commitment.ts'
import { decryptAllowance, decryptBalance, decryptTransfer } from '#lib/wallet/decryption.ts'
import { type ConfidentialKeys, deriveDelegationKey } from '#lib/wallet/keys.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { Books, type OpenDelegation } from './books.ts'
import { DisclosureError } from './disclosure-error.ts'
import type { HistoryEvent } from './history.ts'
import { openAsSender } from './opening.ts'
import { decodeEvent, decodePayment, isToItself, isWithin, type Payment, publicAmountIn } from './payment.ts'
import type { ViewingKeys } from './public-inputs.ts'

/**
 * What moved money into or out of an account. Only `received` and `sent` are payments: an account's payment to itself, and
 * money that it moves between its own places, are in no total.
 */
export type Direction =
  | 'received'
  | 'sent'
  | 'to itself'
  | 'deposited'
  | 'withdrawn'
  | 'escrowed'
  | 'returned'
  | 'clawed back'

/** One line of an account's statement. */
export interface StatementLine {
  date: string
  direction: Direction
  counterparty: string
  /** the channel that paid from the account's delegation */
  spender?: string | undefined
  transaction: string
  /** base units; undefined if the account cannot read it, for the reason in `note` */
  amount: bigint | undefined
  /** what the account holds afterwards, without what is escrowed for channels; undefined while it is unknown */
  balance: bigint | undefined
  note?: string | undefined
}

/** The lines of a period, and the balances that all events give, for comparison with the ledger. */
export interface Statement extends Pick<Books, 'accounts' | 'problems'> {
  lines: StatementLine[]
  /** the delegations that have not been revoked */
  delegations: OpenDelegation[]
}

export interface StatementInput {
  address: string
  keys: Pick<ConfidentialKeys, 'sk' | 'vk'>
  events: readonly HistoryEvent[]
  /** of every account that the payments of this account name */
  viewingKeys: ViewingKeys
  /** ISO 8601; the end is excluded */
  period: { from: string; to: string }
}

const UNREADABLE = 'amount known to the channel and the auditors'
const OTHER_KEYS = 'encrypted to other keys'
const NO_PAYLOAD = 'amount unknown: no source has the call’s payload'
const INVALID = 'not an amount'
const NOT_DERIVABLE = 'the ephemeral secret of this payment cannot be derived again'

/**
 * Decrypts every payment of an account in a period, in ledger order, and follows its balances through all of its events:
 * `problems` lists contradictions between events. Yields the number of events read so far.
 */
export function* readInSteps({
  address,
  keys,
  events,
  viewingKeys,
  period,
}: StatementInput): Generator<number, Statement, undefined> {
  const books = new Books()
  const lines: StatementLine[] = []
  for (const [index, event] of events.entries()) {
    const decoded = decodeEvent(event.topics, event.data)
    books.turnTo(event)
    const entries = decoded ? enter({ address, keys, viewingKeys, books, event }, decoded) : []
    if (isWithin(period, event)) {
      const { spendable, receiving } = books.of(address)
      const balance = spendable.opening && receiving.opening && spendable.opening.value + receiving.opening.value
      const { closedAt: date, transaction } = event
      lines.push(...entries.map((entry) => ({ date, transaction, balance, ...entry })))
    }
    yield index + 1
  }
  const { accounts, problems } = books
  return { lines, accounts, problems, delegations: [...books.delegations.values()] }
}

/** Reads a statement at once. @param onProgress called with the number of events read and of all */
export function readCheckedStatement(
  input: StatementInput,
  onProgress: (done: number, total: number) => void = () => undefined,
): Statement {
  const steps = readInSteps(input)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    onProgress(value, input.events.length)
  }
}

/** The lines alone, for some of an account's events, whose balances are not to be followed. */
export const readStatement = (input: StatementInput): StatementLine[] => readCheckedStatement(input).lines

interface Reading extends Pick<StatementInput, 'address' | 'keys' | 'viewingKeys'> {
  books: Books
  event: HistoryEvent
}

type Entry = Omit<StatementLine, 'date' | 'transaction' | 'balance'>
type Decoded = NonNullable<ReturnType<typeof decodeEvent>>

/** Records an event of the account. @returns its lines */
function enter(reading: Reading, { name, addresses, fields }: Decoded): Entry[] {
  const { address, keys, books, event } = reading
  const [first = '', second = '', third = ''] = addresses
  const amount = publicAmountIn(fields)
  if (name === 'transfer' && [first, second].includes(address)) return pay(reading, fields)
  if (name === 'spender_transfer' && [second, third].includes(address)) return pay(reading, fields)
  if (name === 'deposit' && second === address) {
    if (amount === undefined) books.reject(address)
    books.receive(address, amount === undefined ? undefined : { value: amount, blinding: 0n })
    return [{ direction: 'deposited', counterparty: first, amount, note: amount === undefined ? INVALID : undefined }]
  }
  if (first !== address) return []
  switch (name) {
    case 'register':
      books.register(address)
      return []
    case 'merge':
      books.merge(address)
      return []
    case 'clawback':
      if (amount === undefined) books.reject(address)
      books.clawBack(address, amount)
      return [{ direction: 'clawed back', counterparty: '', amount, note: amount === undefined ? INVALID : undefined }]
    case 'withdraw':
      if (amount === undefined) books.reject(address)
      books.spend(address, amount, balanceIn(reading, fields))
      return [
        { direction: 'withdrawn', counterparty: second, amount, note: amount === undefined ? INVALID : undefined },
      ]
    case 'set_spender': {
      const rest = restIn(keys.vk, second, event, 'set')
      books.spend(address, rest?.value, balanceIn(reading, fields))
      books.delegate(address, second, rest)
      return [{ direction: 'escrowed', counterparty: second, amount: rest?.value, note: rest ? undefined : NO_PAYLOAD }]
    }
    case 'revoke_spender': {
      const rest = ifValid(() => decryptAllowance(deriveDelegationKey(keys.vk, second), fields))
      if (!rest) books.reject(address)
      books.revoke(address, second, rest)
      return [{ direction: 'returned', counterparty: second, amount: rest?.value, note: rest ? undefined : OTHER_KEYS }]
    }
    default:
      return []
  }
}

/** Records a payment of the account. An account that pays itself has one line. */
function pay(reading: Reading, fields: Decoded['fields']): Entry[] {
  const { address, keys, viewingKeys, books, event } = reading
  const decoded = decodePayment(event.topics, event.data)
  if (!decoded) {
    books.reject(address)
    return []
  }
  const { topics: _, data: __, contract: ___, payload: ____, ...place } = event
  const payment: Payment = { ...place, ...decoded }
  const { from, to, spender } = payment
  const entries: Entry[] = []
  if (to === address) {
    const received = ifValid(() => decryptTransfer(keys.vk, fields))
    if (!received) books.reject(address)
    books.receive(address, received)
    const note = received ? undefined : OTHER_KEYS
    entries.push({ direction: 'received', counterparty: from, spender, amount: received?.value, note })
  }
  if (from !== address) return entries
  const sent = { direction: 'sent' as const, counterparty: to, spender }
  if (spender !== undefined) {
    const before = books.restOf(address, spender)
    const rest = restIn(keys.vk, spender, event, 'paid')
    const isKnown = before !== undefined && rest !== undefined && rest.value <= before.value
    const amount = isKnown ? before.value - rest.value : undefined
    books.delegate(address, spender, rest, amount ?? 0n)
    entries.unshift({ ...sent, amount, note: isKnown ? undefined : UNREADABLE })
  } else {
    const read = sentAmount(payment, keys, viewingKeys)
    books.spend(address, read.amount, balanceIn(reading, fields))
    entries.unshift({ ...sent, ...read })
  }
  const [own, back] = entries
  if (!own || !isToItself(payment)) return entries
  return [{ ...own, direction: 'to itself', amount: own.amount ?? back?.amount }]
}

/**
 * The account's balance after its own operation. The circuits encrypt it to the account's keys, so the token emits no event that
 * they do not open.
 */
function balanceIn({ address, keys, books }: Reading, fields: Decoded['fields']): Opening | undefined {
  const after = ifValid(() => decryptBalance(keys.vk, fields))
  if (!after) books.reject(address)
  return after
}

/** The opening in an event; undefined if its fields are not those of the wallet's own operations. */
function ifValid(decrypt: () => Opening | undefined): Opening | undefined {
  try {
    return decrypt()
  } catch (error) {
    if (error instanceof WalletError) return undefined
    throw error
  }
}

function sentAmount(
  payment: Payment,
  keys: Reading['keys'],
  viewingKeys: ViewingKeys,
): Pick<StatementLine, 'amount' | 'note'> {
  const viewingKey = viewingKeys.get(payment.to)
  if (!viewingKey) return { amount: undefined, note: 'the recipient has no account any more' }
  try {
    return { amount: openAsSender(keys, payment, viewingKey).value }
  } catch (error) {
    if (error instanceof DisclosureError) return { amount: undefined, note: NOT_DERIVABLE }
    throw error
  }
}

/** The rest of a delegation to `spender` after a call, from the call's payload. */
function restIn(vk: bigint, spender: string, { payload }: HistoryEvent, call: 'set' | 'paid'): Opening | undefined {
  const [amount, salt] = call === 'set' ? ['a_tilde', 'sigma_a'] : ['a_tilde_new', 'sigma_a_new']
  const a_tilde = payload?.[amount]
  const allowance_salt = payload?.[salt]
  if (!a_tilde || !allowance_salt) return undefined
  return ifValid(() => decryptAllowance(deriveDelegationKey(vk, spender), { a_tilde, allowance_salt }))
}
