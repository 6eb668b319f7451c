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
  /** Totals of a page are printed for it. */
  isSummed?: boolean
}

export interface ReportRow {
  /** ISO 8601; a page of the printed report has the rows of one month. */
  date: string
  cells: readonly string[]
}
