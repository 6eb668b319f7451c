import { formatUnits } from '#lib/text/money.ts'
import type { AuditLine } from './audit.ts'
import type { Problem } from './books.ts'
import { isWithin } from './payment.ts'
import { aboutReport, type ClosedLedger, type Report, type ReportedToken } from './report.ts'

/** An audit as a table: of one account, or of all. */
export function presentAudit(
  lines: readonly AuditLine[],
  given: {
    account?: string | undefined
    period: { from: string; to: string }
    completeFrom?: string | undefined
    through?: ClosedLedger | undefined
    problems: readonly Problem[]
    reported?: ReportedToken | undefined
  },
): Report {
  const { account, period, completeFrom, through, problems, reported } = given
  const decimal = (amount: bigint | undefined) => (amount === undefined ? '' : formatUnits(amount))
  const chosen = lines
    .filter((line) => account === undefined || line.account === account)
    .filter(({ date }) => isWithin(period, { closedAt: date }))
  return {
    title: 'Audit of confidential accounts',
    about: aboutReport({ account: account ?? 'all', period, through, reported }),
    columns: [
      { name: 'date', title: 'Date' },
      { name: 'account', title: 'Account' },
      { name: 'operation', title: 'Operation' },
      { name: 'counterparty', title: 'Counterparty' },
      { name: 'amount', title: 'Amount', isAmount: true },
      { name: 'spendable', title: 'Spendable after', isAmount: true },
      { name: 'receiving', title: 'Received, not merged', isAmount: true },
      { name: 'transaction', title: 'Transaction' },
      { name: 'note', title: 'Note' },
    ],
    rows: chosen.map(({ date, account: name, operation, counterparty = '', transaction, note = '', ...amounts }) => {
      const { amount, spendable, receiving } = amounts
      const cells = [decimal(amount), decimal(spendable), decimal(receiving)]
      return { date, cells: [date, name, operation, counterparty, ...cells, transaction, note] }
    }),
    notes: [
      ...problems.map(({ account: name, problem }) => `${name}: ${problem}.`),
      ...(completeFrom === undefined
        ? []
        : [`Events before ${completeFrom} are missing: neither the RPC nor a named archive has them.`]),
    ],
  }
}
