import { csvRecord } from '#lib/text/csv.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import type { Report, ReportColumn, ReportRow } from './report.ts'

export const REPORT_FORMATS = ['table', 'csv', 'json', 'html'] as const
export type ReportFormat = (typeof REPORT_FORMATS)[number]

export function formatReport(report: Report, format: ReportFormat): string {
  return { table: formatTable, csv: formatCsv, json: formatJson, html: formatHtml }[format](report)
}

function formatTable({ columns, rows, notes, title, about }: Report): string {
  const lines = [columns.map(({ title: head }) => head), ...rows.map(({ cells }) => cells)]
  const widths = columns.map((_, index) => Math.max(...lines.map((cells) => (cells[index] ?? '').length)))
  const pad = (cell: string, index: number) =>
    columns[index]?.isAmount ? cell.padStart(widths[index] ?? 0) : cell.padEnd(widths[index] ?? 0)
  const table = lines.map((cells) => cells.map(pad).join('  ').trimEnd())
  return [title, ...about.map(([name, value]) => `${name}: ${value}`), '', ...table, ...notes].join('\n')
}

/** A decimal is no formula, although it may begin with a minus. */
const DECIMAL = /^-?\d+\.\d{7}$/

function formatCsv({ columns, rows }: Report): string {
  const lines = rows.map(({ cells }) =>
    cells.map((cell) => (DECIMAL.test(cell) ? cell : csvRecord([cell]).replace(/\r\n$/, ''))).join(','),
  )
  return [columns.map(({ name }) => name).join(','), ...lines, ''].join('\r\n')
}

function formatJson({ title, about, columns, rows, notes }: Report): string {
  const named = rows.map(({ cells }) =>
    Object.fromEntries(columns.map(({ name }, index) => [name, cells[index] || null])),
  )
  return JSON.stringify({ title, ...Object.fromEntries(about), rows: named, notes }, null, 2)
}

/** A page per month, with its totals, that prints as it is shown. It loads nothing. */
function formatHtml(report: Report): string {
  const { title, about, columns, rows, notes } = report
  const months = [...Map.groupBy(rows, ({ date }) => date.slice(0, 7))]
  const pages = months.length > 0 ? months : [['', []] as [string, ReportRow[]]]
  const facts = about.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`).join('')
  const section = ([month, own]: [string, ReportRow[]], index: number) => `<section>
<header><h1>${escapeHtml(title)}</h1><dl>${facts}</dl></header>
<h2>${month ? escapeHtml(monthName(month)) : 'No payments'}</h2>
<table>
<thead><tr>${columns.map((column) => `<th${classOf(column)}>${escapeHtml(column.title)}</th>`).join('')}</tr></thead>
<tbody>
${own.map(({ cells }) => `<tr>${columns.map((column, at) => `<td${classOf(column)}>${cell(cells[at] ?? '')}</td>`).join('')}</tr>`).join('\n')}
</tbody>
<tfoot><tr>${columns.map((column, at) => `<td${classOf(column)}>${sumOf(column, own, at)}</td>`).join('')}</tr></tfoot>
</table>
${index === pages.length - 1 ? notes.map((note) => `<p class="note">${escapeHtml(note)}</p>`).join('\n') : ''}
<footer>Part ${index + 1} of ${pages.length}</footer>
</section>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
${pages.map(section).join('\n')}
</body>
</html>
`
}

const classOf = ({ isAmount }: ReportColumn): string => (isAmount ? ' class="amount"' : '')

/** Addresses and hashes wrap anywhere, other text between words. A time is shown to the minute. */
function cell(text: string): string {
  const time = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):[\d.]+Z$/.exec(text)
  if (time) return `<time datetime="${text}">${time[1]}<br>${time[2]} UTC</time>`
  return escapeHtml(text).replace(/\b([GC][A-Z2-7]{55}|[0-9a-f]{64})\b/g, '<code>$1</code>')
}

function sumOf({ isSummed }: ReportColumn, rows: readonly ReportRow[], at: number): string {
  if (at === 0) return 'Total'
  if (!isSummed) return ''
  const amounts = rows.map(({ cells }) => cells[at] ?? '').filter((amount) => DECIMAL.test(amount))
  return formatUnits(amounts.reduce((sum, amount) => sum + parseUnits(amount), 0n))
}

const monthName = (month: string): string =>
  new Date(`${month}-01T00:00:00Z`).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' })

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)

const STYLE = `
:root { color-scheme: light; --line: #d4d4d8; --quiet: #52525b; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f4f5; color: #18181b; font: 12px/1.45 system-ui, sans-serif; }
section { max-width: 297mm; margin: 16px auto; padding: 12mm; overflow-x: auto; background: #fff; }
h1 { margin: 0 0 8px; font-size: 20px; }
h2 { margin: 20px 0 8px; font-size: 15px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 0; color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--quiet); font-weight: 600; }
code { display: block; min-width: 22ch; font: 10px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
time, .amount { white-space: nowrap; }
.amount { text-align: right; font-variant-numeric: tabular-nums; }
tfoot td { border-bottom: 0; font-weight: 600; }
.note { margin: 12px 0 0; color: var(--quiet); }
footer { margin-top: 16px; color: var(--quiet); font-size: 11px; }
thead { display: table-header-group; }
tfoot { display: table-row-group; }
tr { break-inside: avoid; }
@page { size: A4 landscape; margin: 10mm; }
@media print {
  body { background: none; font-size: 10.5px; }
  code { font-size: 9px; }
  th, td { padding-top: 3px; padding-bottom: 3px; }
  section { max-width: none; margin: 0; padding: 0; overflow: visible; }
  section + section { break-before: page; }
}
`
