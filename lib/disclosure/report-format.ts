import { BOM, csvRecord } from '#lib/text/csv.ts'
import { onOneLine } from '#lib/text/printable.ts'
import { DECIMAL, type Report } from './report.ts'
import { formatHtml } from './report-page.ts'

export const REPORT_FORMATS = ['table', 'csv', 'json', 'html'] as const
export type ReportFormat = (typeof REPORT_FORMATS)[number]

export function formatReport(report: Report, format: ReportFormat): string {
  return { table: formatTable, csv: formatCsv, json: formatJson, html: formatHtml }[format](report)
}

function formatTable({ columns, rows, notes, title, about }: Report): string {
  const lines = [columns.map(({ title: head }) => head), ...rows.map(({ cells }) => cells.map(onOneLine))]
  const widths = columns.map((_, index) =>
    lines.reduce((most, cells) => Math.max(most, (cells[index] ?? '').length), 0),
  )
  const pad = (cell: string, index: number) =>
    columns[index]?.isAmount ? cell.padStart(widths[index] ?? 0) : cell.padEnd(widths[index] ?? 0)
  const table = lines.map((cells) => cells.map(pad).join('  ').trimEnd())
  return [title, ...about.map(([name, value]) => `${name}: ${onOneLine(value)}`), '', ...table, ...notes].join('\n')
}

function formatCsv({ columns, rows }: Report): string {
  const lines = rows.map(({ cells }) =>
    // A decimal isn't a formula, even if it begins with a minus.
    cells.map((cell) => (DECIMAL.test(cell) ? cell : csvRecord([cell]).replace(/\r\n$/, ''))).join(','),
  )
  return BOM + [columns.map(({ name }) => name).join(','), ...lines, ''].join('\r\n')
}

function formatJson({ title, about, columns, rows, notes }: Report): string {
  const named = rows.map(({ cells }) =>
    Object.fromEntries(columns.map(({ name }, index) => [name, cells[index] || null])),
  )
  return JSON.stringify({ title, ...Object.fromEntries(about), rows: named, notes }, null, 2)
}
