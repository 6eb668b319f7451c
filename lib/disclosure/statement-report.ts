import { formatUnits } from '#lib/text/money.ts'
import type { Problem } from './books.ts'
import { aboutReport, type ClosedLedger, type Report, type ReportedToken } from './report.ts'
import type { Direction, StatementInput, StatementLine } from './statement.ts'

/** What balances cannot confirm. */
const LIMITS =
  'Balances confirm sums, not who paid or when. Money that returns through other accounts is indistinguishable from income.'

/** A statement as a table. `nameOf` gives a counterparty's name, if it has one. */
export function presentStatement(
  given: Pick<StatementInput, 'address' | 'period'> & {
    completeFrom?: string | undefined
    through?: ClosedLedger | undefined
    problems?: readonly Pick<Problem, 'problem'>[]
    reported?: ReportedToken | undefined
  },
  lines: readonly StatementLine[],
  nameOf: (address: string) => string | undefined,
): Report {
  let total = 0n
  const rows = lines.map(({ date, direction, counterparty, spender, transaction, amount, balance, note }) => {
    if (amount !== undefined) total += direction === 'received' ? amount : direction === 'sent' ? -amount : 0n
    const value = formatKnown(amount)
    const columns = { received: '', sent: '', other: '', [columnOf(direction)]: value }
    const remark = [spender && `paid by channel ${spender}`, note].filter(Boolean).join('; ')
    const name = nameOf(counterparty) ?? ''
    const amounts = [columns.received, columns.sent, formatUnits(total), columns.other, formatKnown(balance)]
    return {
      date,
      cells: [date, direction, counterparty, name, ...amounts, transaction, remark],
      unread: amount === undefined ? columnOf(direction) : undefined,
    }
  })
  const { address, period, completeFrom, through, problems = [], reported } = given
  const isCut = completeFrom !== undefined && Date.parse(completeFrom) > Date.parse(period.from)
  const unread = rows.filter((row) => row.unread !== undefined).length
  return {
    title: 'Statement of confidential payments',
    about: aboutReport({ account: address, period, through, reported }),
    columns: [
      { name: 'date', title: 'Date' },
      { name: 'direction', title: 'Direction' },
      { name: 'counterparty', title: 'Counterparty' },
      { name: 'name', title: 'Name' },
      { name: 'received', title: 'Received', isAmount: true, isSummed: true },
      { name: 'sent', title: 'Sent', isAmount: true, isSummed: true },
      { name: 'runningTotal', title: 'Running total', isAmount: true },
      { name: 'other', title: 'In no total', isAmount: true },
      { name: 'balance', title: 'Balance', isAmount: true },
      { name: 'transaction', title: 'Transaction' },
      { name: 'note', title: 'Note' },
    ],
    rows,
    notes: [
      ...problems.map(({ problem }) => `${problem}.`),
      ...(unread > 0 ? [`Amounts that cannot be read, and are not in the totals: ${unread}.`] : []),
      ...(isCut ? [`Payments before ${completeFrom} are missing: neither the RPC nor a named archive has them.`] : []),
      LIMITS,
    ],
  }
}

const formatKnown = (amount: bigint | undefined): string => (amount === undefined ? '' : formatUnits(amount))

const columnOf = (direction: Direction) => (direction === 'received' || direction === 'sent' ? direction : 'other')
