import { ALL, readAccountStatement, readCompared } from '#lib/disclosure/account-statement.ts'
import { presentAudit } from '#lib/disclosure/audit-report.ts'
import type { Problem } from '#lib/disclosure/books.ts'
import { readAuditInWorker, readStatementInWorker } from '#lib/disclosure/node/reading.ts'
import type { Report } from '#lib/disclosure/report.ts'
import { formatReport, REPORT_FORMATS, type ReportFormat } from '#lib/disclosure/report-format.ts'
import { presentStatement } from '#lib/disclosure/statement-report.ts'
import { pages } from '#lib/sdk/payroll-client.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Outcome } from '../process/command.ts'
import { printMessage } from '../process/output.ts'
import type { ClientNetwork } from './participants.ts'
import { connect } from './wallet-session.ts'

/** The options of a statement, as given on the command line. */
interface StatementOptions {
  from?: string | undefined
  to?: string | undefined
  format?: string | undefined
}

/** Every payment that an account has received and sent. Amounts are decrypted in this process. */
export async function makeStatement(
  network: ClientNetwork,
  { address, keys }: Pick<Holder, 'address' | 'keys'>,
  options: StatementOptions,
  directory?: { service: string; session: string } | undefined,
): Promise<Outcome> {
  const { period, format } = readOptions(options)
  const names = await readNames(directory)
  const { lines, problems, ...history } = await readAccountStatement(network, { address, keys }, period, (input) =>
    readStatementInWorker(input, sayProgress),
  )
  const about = { address, period, ...history, problems, reported: network }
  return printReport(
    presentStatement(about, lines, (name) => names.get(name)),
    format,
    problems,
  )
}

/** An auditor's reading of the token, or of one account. */
export async function makeAudit(
  network: ClientNetwork,
  secrets: readonly bigint[],
  options: StatementOptions & { account?: string | undefined },
): Promise<Outcome> {
  const { period, format } = readOptions(options)
  const { account } = options
  const { lines, problems, ...history } = await readCompared(network, period, undefined, (events) =>
    readAuditInWorker(events, secrets, sayProgress),
  )
  const concerned = problems.filter((problem) => account === undefined || [account, ALL].includes(problem.account))
  const about = { account, period, ...history, problems: concerned, reported: network }
  return printReport(presentAudit(lines, about), format, concerned)
}

/**
 * The report; it has failed if its events contradict each other or the ledger. What a saved report says about that is also
 * printed beside it: CSV has no place for notes.
 */
function printReport(report: Report, format: ReportFormat, problems: readonly Problem[]): Outcome {
  const contradictions = problems.filter(({ isContradiction }) => isContradiction).map(({ problem }) => problem)
  if (format === 'csv') for (const note of report.notes) printMessage(note)
  else if (format !== 'table') for (const problem of contradictions) printMessage(problem)
  return { text: formatReport(report, format), hasFailed: contradictions.length > 0 }
}

const FIRST = '1970-01-01T00:00:00.000Z'

function readOptions({ from, to, format = 'table' }: StatementOptions) {
  const reportFormat = REPORT_FORMATS.find((each) => each === format)
  if (!reportFormat) throw new Error(`--format is one of ${REPORT_FORMATS.join(', ')}`)
  const period = { from: from === undefined ? FIRST : instantOf(from), to: instantOf(to ?? new Date().toISOString()) }
  return { period, format: reportFormat satisfies ReportFormat }
}

/** A date means the start of that day in UTC. */
export function instantOf(text: string): string {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new Error(`${text} is not a date`)
  return new Date(time).toISOString()
}

/** The names of the contractors of the session's organisation, by address. */
async function readNames(directory: { service: string; session: string } | undefined): Promise<Map<string, string>> {
  if (!directory) return new Map()
  const client = connect(directory.service, directory.session)
  const names = new Map<string, string>()
  for await (const { contractors } of pages((query) => client.GET('/contractors', { params: { query } }), 500)) {
    for (const { address, name } of contractors) if (address) names.set(address, name)
  }
  return names
}

/** Prints the progress every thousand events. */
function sayProgress(done: number, total: number): void {
  if (done % 1_000 === 0) printMessage(`read ${done} of ${total} events`)
}
