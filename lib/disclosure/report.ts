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

/** The facts that reports have in common. */
export function aboutReport(
  account: string,
  { from, to }: { from: string; to: string },
  reported: ReportedToken | undefined,
): Report['about'] {
  const network: Report['about'] = reported
    ? [
        ...(reported.asset === undefined ? [] : [['Amounts in', reported.asset] as const]),
        ['Network', reported.passphrase],
        ['Token', reported.token],
      ].map(([name = '', value = '']) => [name, value])
    : []
  return [['Account', account], ['From', from], ['To (excluded)', to], ...network]
}
