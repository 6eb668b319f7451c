import { checkAudit, checkDelegations } from '#lib/disclosure/audit.ts'
import { presentAudit } from '#lib/disclosure/audit-report.ts'
import { readHistory, readPayloads } from '#lib/disclosure/history.ts'
import { readAuditInWorker, readStatementInWorker } from '#lib/disclosure/node/reading.ts'
import { decodePayment } from '#lib/disclosure/payment.ts'
import type { Report } from '#lib/disclosure/report.ts'
import { formatReport, REPORT_FORMATS, type ReportFormat } from '#lib/disclosure/report-format.ts'
import { presentStatement } from '#lib/disclosure/statement.ts'
import { isWithin } from '#lib/disclosure/verify.ts'
import { pages } from '#lib/sdk/payroll-client.ts'
import type { DelegationEntry } from '#lib/stellar/confidential-token.ts'
import { readConfidentialAccounts, readDelegations } from '#lib/wallet/account.ts'
import type { Holder } from '#lib/wallet/keys.ts'
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
): Promise<string> {
  const { period, format } = readOptions(options)
  const { events: all, completeFrom } = await readHistory(network, address)
  const events = await readPayloads(network, all)
  const payees = events.flatMap((event) => {
    const payment = isWithin(period, event) ? decodePayment(event.topics, event.data) : undefined
    return payment?.from === address ? payment.to : []
  })
  const accounts = await readConfidentialAccounts(network.rpc, network.token, [...new Set(payees)])
  const viewingKeys = new Map([...accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
  const names = await readNames(directory)
  const lines = await readStatementInWorker({ address, keys, events, viewingKeys, period }, sayProgress)
  return printReport(
    presentStatement({ address, period, completeFrom, reported: network }, lines, (name) => names.get(name)),
    format,
  )
}

/** An auditor's reading of the token, or of one account. */
export async function makeAudit(
  network: ClientNetwork,
  secrets: readonly bigint[],
  options: StatementOptions & { account?: string | undefined },
): Promise<string> {
  const { period, format } = readOptions(options)
  const { events, completeFrom } = await readHistory(network)
  const audit = await readAuditInWorker(events, secrets, sayProgress)
  const entries = await readConfidentialAccounts(network.rpc, network.token, [...audit.accounts.keys()])
  const problems = [
    ...checkAudit(audit, entries),
    ...checkDelegations(audit.delegations, await readDelegationEntries(network, audit.delegations)),
  ]
  return printReport(
    presentAudit(audit.lines, { account: options.account, period, completeFrom, problems, reported: network }),
    format,
  )
}

async function readDelegationEntries(network: ClientNetwork, pairs: readonly { owner: string; spender: string }[]) {
  const entries: (DelegationEntry | undefined)[] = []
  for (let start = 0; start < pairs.length; start += MAX_DELEGATIONS) {
    entries.push(...(await readDelegations(network, pairs.slice(start, start + MAX_DELEGATIONS))).delegations)
  }
  return entries
}

/** The maximum number of ledger entries in one request. */
const MAX_DELEGATIONS = 200

/** CSV has no place for notes, such as missing events, so they are printed separately. */
function printReport(report: Report, format: ReportFormat): string {
  if (format === 'csv') for (const note of report.notes) console.error(note)
  return formatReport(report, format)
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
  if (done % 1_000 === 0) console.error(`read ${done} of ${total} events`)
}
