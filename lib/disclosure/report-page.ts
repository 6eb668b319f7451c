import { escapeHtml } from '#lib/text/html.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { DECIMAL, type Report, type ReportColumn, type ReportRow } from './report.ts'

/** A page per month, with its totals, that prints as shown and loads nothing. */
export function formatHtml(report: Report): string {
  const { title, about, columns, rows, notes } = report
  const months = [...Map.groupBy(rows, ({ date }) => date.slice(0, 7))]
  const pages = months.length > 0 ? months : [['', []] as [string, ReportRow[]]]
  const facts = about.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${textOf(value)}</dd>`).join('')
  const subject = about.slice(0, 1).flat().join(': ')
  const section = ([month, own]: [string, ReportRow[]], index: number) => {
    const name = month ? monthName(month) : 'No payments'
    const isLast = index === pages.length - 1
    const totals = [totalRow('Total', columns, own)]
    if (isLast && pages.length > 1) totals.push(totalRow('Total of all months', columns, rows))
    const remarks = [...unreadNote(own), ...(isLast ? notes : [])]
    return `<section>
<header><h1>${escapeHtml(title)}</h1><dl>${facts}</dl></header>
<table>
<thead>
<tr class="month"><th colspan="${columns.length}">${escapeHtml(name)}<span>${escapeHtml(subject)}</span></th></tr>
<tr>${columns.map((column) => `<th${classOf(column)}>${escapeHtml(column.title)}</th>`).join('')}</tr>
</thead>
<tbody>
${own.map((row) => rowOf(columns, row)).join('\n')}
</tbody>
<tfoot>
${totals.join('\n')}
</tfoot>
</table>
${remarks.map((note) => `<p class="note">${textOf(note)}</p>`).join('\n')}
${pages.length > 1 ? `<footer>Month ${index + 1} of ${pages.length}</footer>` : ''}
</section>`
  }
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

function rowOf(columns: readonly ReportColumn[], { cells, unread }: ReportRow): string {
  const content = columns.map((column, at) => (column.name === unread ? '<em>unknown</em>' : cellOf(cells[at] ?? '')))
  return `<tr>${columns.map((column, at) => cell(column, content[at] ?? '')).join('')}</tr>`
}

/** The sums of the columns that have one, if any has. */
function totalRow(name: string, columns: readonly ReportColumn[], rows: readonly ReportRow[]): string {
  const start = columns.findIndex(({ isSummed }) => isSummed)
  if (start < 0) return ''
  const sums = columns.map((column, at) => cell(column, column.isSummed ? sumOf(rows, at) : '')).slice(start)
  return `<tr><td colspan="${start}">${escapeHtml(name)}</td>${sums.join('')}</tr>`
}

const cell = (column: ReportColumn, content: string): string =>
  `<td${classOf(column)} data-title="${escapeHtml(column.title)}">${content && `<div>${content}</div>`}</td>`

const classOf = ({ isAmount }: ReportColumn): string => (isAmount ? ' class="amount"' : '')

function unreadNote(rows: readonly ReportRow[]): string[] {
  const count = rows.filter(({ unread }) => unread !== undefined).length
  if (count === 0) return []
  return [
    count === 1 ? 'One amount is unknown and not in the total.' : `${count} amounts are unknown and not in the total.`,
  ]
}

/** Times are shown to the minute, and thousands are separated by commas. */
function cellOf(text: string): string {
  const time = TIME.exec(text)
  if (time) return `<time datetime="${text}">${time[1]}<br>${time[2]} UTC</time>`
  if (text === '') return ''
  return DECIMAL.test(text)
    ? grouped(text)
    : text
        .split('; ')
        .map((part) => `<div>${textOf(part)}</div>`)
        .join('')
}

const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):[\d.]+Z$/

/** Addresses and hashes wrap anywhere, other text between words. Times are shown without seconds. */
const textOf = (text: string): string =>
  escapeHtml(text)
    .replace(/1970-01-01T00:00:00\.000Z/g, 'the beginning')
    .replace(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d):[\d.]+Z/g, '$1 $2 UTC')
    .replace(/\b([GC][A-Z2-7]{55}|[0-9a-f]{64})\b/g, '<code>$1</code>')

const grouped = (amount: string): string => amount.replace(/\B(?=(\d{3})+\.)/g, ',')

function sumOf(rows: readonly ReportRow[], at: number): string {
  const amounts = rows.map(({ cells }) => cells[at] ?? '').filter((amount) => DECIMAL.test(amount))
  return grouped(formatUnits(amounts.reduce((sum, amount) => sum + parseUnits(amount), 0n)))
}

const monthName = (month: string): string =>
  new Date(`${month}-01T00:00:00Z`).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' })

const STYLE = `
:root { color-scheme: light; --line: #d4d4d8; --quiet: #52525b; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f4f5; color: #18181b; font: 12px/1.45 system-ui, sans-serif; }
section { max-width: 297mm; margin: 16px auto; padding: 12mm; overflow-x: auto; background: #fff; }
h1 { margin: 0 0 8px; font-size: 20px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 0 0 16px; color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
dd code { display: inline; font-size: 11px; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--quiet); font-weight: 600; }
th:last-child, td:last-child { padding-right: 0; }
.month th { border: 0; color: #18181b; font-size: 15px; }
.month span { display: none; float: right; color: var(--quiet); font: 9px/2 ui-monospace, monospace; }
td code { display: block; min-width: 22ch; font: 10px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
td[data-title='Name'] { min-width: 14ch; }
time, .amount { white-space: nowrap; }
.amount { text-align: right; font-variant-numeric: tabular-nums; }
em { color: var(--quiet); }
tfoot td { font-weight: 600; }
tfoot tr:last-child td { border-bottom: 0; }
.note { margin: 12px 0 0; color: var(--quiet); }
footer { margin-top: 16px; color: var(--quiet); font-size: 11px; }
thead { display: table-header-group; }
tfoot { display: table-row-group; }
tr { break-inside: avoid; }
@page { size: A4 landscape; margin: 10mm 10mm 14mm; @bottom-right { content: 'Page ' counter(page) ' of ' counter(pages); font: 9px system-ui, sans-serif; color: #52525b; } }
@media print {
  body { background: none; font-size: 10.5px; }
  td code { font-size: 9px; }
  th, td { padding-top: 3px; padding-bottom: 3px; }
  section { max-width: none; margin: 0; padding: 0; overflow: visible; }
  section + section { break-before: page; }
  .month span { display: inline; }
  footer { display: none; }
}
@media screen and (max-width: 760px) {
  section { padding: 16px; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 6px; color: #18181b; }
  table, thead, tbody, tfoot, tr, td, .month th { display: block; }
  thead tr + tr, td:empty { display: none; }
  tbody tr, tfoot tr { padding: 8px 0; border-bottom: 1px solid var(--line); }
  td, .amount { display: grid; grid-template-columns: 8em 1fr; padding: 1px 0; border: 0; text-align: left; }
  td::before { content: attr(data-title); color: var(--quiet); font-weight: 400; }
  td code { min-width: 0; }
  tfoot td:first-child { display: block; }
  tfoot tr:last-child { border: 0; }
}
`
