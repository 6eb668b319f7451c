import { formatUnits } from '#lib/text/money.ts'
import { decryptAllowance } from '#lib/wallet/decryption.ts'
import { type ConfidentialKeys, deriveDelegationKey } from '#lib/wallet/keys.ts'
import { DisclosureError } from './disclosure-error.ts'
import type { HistoryEvent } from './history.ts'
import { openAsRecipient, openAsSender } from './opening.ts'
import { decodeEvent, decodePayment, type Payment, payerOf } from './payment.ts'
import type { ViewingKeys } from './public-inputs.ts'
import { aboutReport, type Report, type ReportedToken } from './report.ts'
import { isWithin } from './verify.ts'

/** One payment of an account's statement. */
export interface StatementLine {
  date: string
  direction: 'received' | 'sent'
  counterparty: string
  /** the channel that paid from the account's delegation */
  spender?: string | undefined
  transaction: string
  /** base units; undefined if the account cannot read it, for the reason in `note` */
  amount: bigint | undefined
  note?: string | undefined
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
const NOT_DERIVABLE = 'the ephemeral secret of this payment cannot be derived again'

/**
 * Decrypts every payment of an account in a period, in ledger order.
 * @param onProgress called with the number of payments read and of all
 */
export function readStatement(
  { address, keys, events, viewingKeys, period }: StatementInput,
  onProgress: (done: number, total: number) => void = () => undefined,
): StatementLine[] {
  const allowances = new Map<string, bigint | undefined>()
  const lines: StatementLine[] = []
  for (const [index, event] of events.entries()) {
    const delegated = followAllowance(allowances, { address, keys, event })
    const payment = decodePayment(event.topics, event.data)
    if (payment && isWithin(period, event)) {
      const { topics: _, data: __, contract: ___, payload: ____, ...place } = event
      lines.push(...linesOf({ ...place, ...payment }, { address, keys, viewingKeys, delegated }))
    }
    onProgress(index + 1, events.length)
  }
  return lines
}

interface Reading {
  address: string
  keys: Pick<ConfidentialKeys, 'sk' | 'vk'>
  viewingKeys: ViewingKeys
  /** how much the event took from a delegation of the account */
  delegated: bigint | undefined
}

function linesOf(payment: Payment, { address, keys, viewingKeys, delegated }: Reading): StatementLine[] {
  const shared = { date: payment.closedAt, transaction: payment.transaction, spender: payment.spender }
  const lines: StatementLine[] = []
  if (payment.from === address) {
    const line = { ...shared, direction: 'sent' as const, counterparty: payment.to }
    if (payment.spender !== undefined && payerOf(payment) !== address) {
      lines.push({ ...line, amount: delegated, note: delegated === undefined ? UNREADABLE : undefined })
    } else lines.push({ ...line, ...sentAmount(payment, keys, viewingKeys) })
  }
  if (payment.to === address) {
    const amount = openAsRecipient(keys.vk, payment)?.value
    const note = amount === undefined ? OTHER_KEYS : undefined
    lines.push({ ...shared, direction: 'received', counterparty: payment.from, amount, note })
  }
  return lines
}

function sentAmount(payment: Payment, keys: Reading['keys'], viewingKeys: ViewingKeys) {
  const viewingKey = viewingKeys.get(payment.to)
  if (!viewingKey) return { amount: undefined, note: 'the recipient has no account any more' }
  try {
    return { amount: openAsSender(keys, payment, viewingKey).value }
  } catch (error) {
    if (error instanceof DisclosureError) return { amount: undefined, note: NOT_DERIVABLE }
    throw error
  }
}

/**
 * Tracks the rest of each of the account's delegations, from the payloads of the calls. @returns how much the event
 * paid from one, if the rest before and after it are known
 */
function followAllowance(
  allowances: Map<string, bigint | undefined>,
  { address, keys, event }: Pick<Reading, 'address' | 'keys'> & { event: HistoryEvent },
): bigint | undefined {
  const { name, addresses } = decodeEvent(event.topics, event.data) ?? { name: '', addresses: [] }
  const [first = '', second = ''] = addresses
  if (name === 'revoke_spender' && first === address) allowances.delete(second)
  if (name === 'set_spender' && first === address) allowances.set(second, restIn(keys.vk, second, event, 'set'))
  if (name !== 'spender_transfer' || second !== address) return undefined
  const before = allowances.get(first)
  const rest = restIn(keys.vk, first, event, 'paid')
  allowances.set(first, rest)
  return before === undefined || rest === undefined || rest > before ? undefined : before - rest
}

/** The rest of a delegation to `spender` after a call, from the call's payload. */
function restIn(vk: bigint, spender: string, { payload }: HistoryEvent, call: 'set' | 'paid'): bigint | undefined {
  const [amount, salt] = call === 'set' ? ['a_tilde', 'sigma_a'] : ['a_tilde_new', 'sigma_a_new']
  const a_tilde = payload?.[amount]
  const allowance_salt = payload?.[salt]
  if (!a_tilde || !allowance_salt) return undefined
  return decryptAllowance(deriveDelegationKey(vk, spender), { a_tilde, allowance_salt })?.value
}

/** A statement as a table. `nameOf` gives a counterparty's name, if it has one. */
export function presentStatement(
  given: Pick<StatementInput, 'address' | 'period'> & {
    completeFrom?: string | undefined
    reported?: ReportedToken | undefined
  },
  lines: readonly StatementLine[],
  nameOf: (address: string) => string | undefined,
): Report {
  let total = 0n
  const rows = lines.map(({ date, direction, counterparty, spender, transaction, amount, note }) => {
    if (amount !== undefined) total += direction === 'received' ? amount : -amount
    const value = amount === undefined ? '' : formatUnits(amount)
    const [received, sent] = direction === 'received' ? [value, ''] : ['', value]
    const remark = [spender && `paid by channel ${spender}`, note].filter(Boolean).join('; ')
    const name = nameOf(counterparty) ?? ''
    return {
      date,
      cells: [date, direction, counterparty, name, received, sent, formatUnits(total), transaction, remark],
      unread: amount === undefined ? direction : undefined,
    }
  })
  const { address, period, completeFrom, reported } = given
  const isCut = completeFrom !== undefined && Date.parse(completeFrom) > Date.parse(period.from)
  const unread = lines.filter(({ amount }) => amount === undefined).length
  return {
    title: 'Statement of confidential payments',
    about: aboutReport(address, period, reported),
    columns: [
      { name: 'date', title: 'Date' },
      { name: 'direction', title: 'Direction' },
      { name: 'counterparty', title: 'Counterparty' },
      { name: 'name', title: 'Name' },
      { name: 'received', title: 'Received', isAmount: true, isSummed: true },
      { name: 'sent', title: 'Sent', isAmount: true, isSummed: true },
      { name: 'runningTotal', title: 'Running total', isAmount: true },
      { name: 'transaction', title: 'Transaction' },
      { name: 'note', title: 'Note' },
    ],
    rows,
    notes: [
      ...(unread > 0 ? [`Amounts that cannot be read, and are not in the totals: ${unread}.`] : []),
      ...(isCut ? [`Payments before ${completeFrom} are missing: neither the RPC nor a named archive has them.`] : []),
    ],
  }
}
