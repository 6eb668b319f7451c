/** A table that is printed, saved or handed to an accountant. */
export interface Report {
  title: string
  /** Facts below the title: account, period, network. */
  about: readonly [name: string, value: string][]
  columns: readonly ReportColumn[]
  rows: readonly ReportRow[]
  /** Sentences below the table, such as missing events. */
  notes: readonly string[]
}

export interface ReportColumn {
  /** Key of JSON and CSV. */
  name: string
  title: string
  /** Amounts are aligned right, and are decimals. */
  isAmount?: boolean
  /** Each page has its total of this column. */
  isSummed?: boolean
}

export interface ReportRow {
  /** ISO 8601; a page of the printed report has the rows of one month. */
  date: string
  cells: readonly string[]
  /** the name of the column whose amount cannot be read, and is missing from its total */
  unread?: string | undefined
}

/** An amount in a cell. */
export const DECIMAL = /^-?\d+\.\d{7}$/

/** The network of a report, and the code of the asset that its amounts are in. */
export interface ReportedToken {
  passphrase: string
  token: string
  asset?: string | undefined
}

/** A ledger, and when it closed (ISO 8601). */
export interface ClosedLedger {
  ledger: number
  closedAt: string
}

/** The facts that reports have in common. `through`: the last ledger that was read. */
export function aboutReport(given: {
  account: string
  period: { from: string; to: string }
  through: ClosedLedger | undefined
  reported: ReportedToken | undefined
}): Report['about'] {
  const { account, period, through, reported } = given
  const facts: [string, string | undefined][] = [
    ['Account', account],
    ['From', period.from],
    ['To (excluded)', period.to],
    ['As of', through && `ledger ${through.ledger}, ${through.closedAt}`],
    ['Amounts in', reported?.asset],
    ['Network', reported?.passphrase],
    ['Token', reported?.token],
  ]
  return facts.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]))
}
