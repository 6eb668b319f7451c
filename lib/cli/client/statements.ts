import { setTimeout } from 'node:timers/promises'
import { presentAudit } from '#lib/disclosure/audit-report.ts'
import { type Balances, type Books, compareBooks, type Problem } from '#lib/disclosure/books.ts'
import { type HistoryEvent, readHistory, readPayloads, tokenFilters } from '#lib/disclosure/history.ts'
import { readRecentEvents } from '#lib/disclosure/ledger-event.ts'
import { readAuditInWorker, readStatementInWorker } from '#lib/disclosure/node/reading.ts'
import { decodeEvent, decodePayment } from '#lib/disclosure/payment.ts'
import type { ClosedLedger, Report } from '#lib/disclosure/report.ts'
import { formatReport, REPORT_FORMATS, type ReportFormat } from '#lib/disclosure/report-format.ts'
import { presentStatement } from '#lib/disclosure/statement-report.ts'
import { pages } from '#lib/sdk/payroll-client.ts'
import { reachLedger } from '#lib/stellar/ledger-error.ts'
import { LAG } from '#lib/stellar/rpc-server.ts'
import { readConfidentialAccount, readConfidentialAccounts, readDelegations } from '#lib/wallet/account.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
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
  const entry = await readConfidentialAccount(network.rpc, network.token, address)
  if (entry && !Buffer.from(entry.viewingKey).equals(keys.viewingKey)) {
    throw new WalletError(
      'other-keys',
      `${address} is registered with other keys: this signer can read none of its payments`,
    )
  }
  const { lines, problems, ...history } = await readAndCompare(network, period, address, async (all) => {
    const events = await readPayloads(network, all)
    // Also those outside the period: each amount that was sent is compared with the balances before and after it.
    const payees = events.flatMap((event) => {
      const payment = decodePayment(event.topics, event.data)
      return payment?.from === address ? payment.to : []
    })
    const accounts = await readConfidentialAccounts(network.rpc, network.token, [...new Set(payees)])
    const viewingKeys = new Map([...accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
    return await readStatementInWorker({ address, keys, events, viewingKeys, period }, sayProgress)
  })
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
  const { lines, problems, ...history } = await readAndCompare(network, period, undefined, (events) =>
    readAuditInWorker(events, secrets, sayProgress),
  )
  const concerned = problems.filter((problem) => account === undefined || [account, ALL].includes(problem.account))
  const about = { account, period, ...history, problems: concerned, reported: network }
  return printReport(presentAudit(lines, about), format, concerned)
}

/** The account of a problem that concerns every account. */
const ALL = 'all'

/** How often balances are compared at most: accounts change between reading their events and their entries, and nodes lag. */
const ROUNDS = 3

/**
 * Reads a history and compares its balances with the ledger's, again if something contradicts. Reports accounts that changed since as
 * not compared.
 */
async function readAndCompare<Lines>(
  network: ClientNetwork,
  period: { to: string },
  account: string | undefined,
  read: (events: readonly HistoryEvent[]) => Promise<Balances & Pick<Books, 'problems'> & { lines: Lines }>,
) {
  const readAll = async () => {
    const history = await readHistory(network, account)
    return { ...history, reading: await read(history.events) }
  }
  let current = await readAll()
  for (let round = 1; ; round += 1) {
    const { reading, events, through, completeFrom } = current
    const ledger = {
      accounts: await readConfidentialAccounts(network.rpc, network.token, [...reading.accounts.keys()]),
      delegations: (await readDelegations(network, reading.delegations)).delegations,
      through: through.ledger,
    }
    const compared = compareBooks(reading, ledger, account)
    const isDoubtful = !hasContradiction(reading.problems) && hasContradiction(compared)
    const changed = isDoubtful ? await findChanged(network, account, through.ledger, events.at(-1)?.id) : new Set()
    if (!isDoubtful || round === ROUNDS) {
      const problems = [
        ...reading.problems,
        ...compared.map((problem) => (changed.has(problem.account) ? notCompared(problem.account) : problem)),
        ...findDelay(through, period),
      ]
      return { lines: reading.lines, problems, through, completeFrom }
    }
    await setTimeout(PAUSE_MS)
    if (changed.size > 0) current = await readAll()
  }
}

const PAUSE_MS = 1_000

const hasContradiction = (problems: readonly Problem[]) => problems.some(({ isContradiction }) => isContradiction)

const notCompared = (account: string): Problem => ({
  account,
  problem: 'the account changed while it was read, and its balances were not compared with the ledger’s: try again',
  // Otherwise a payment to the account could hide a source's lie about it.
  isContradiction: true,
})

/** The accounts that appear in events newer than the ones already read. */
async function findChanged(
  network: ClientNetwork,
  account: string | undefined,
  through: number,
  last = '',
): Promise<Set<string>> {
  const start = Math.max(1, through - LAG)
  const events = await reachLedger(readRecentEvents(network.rpc, tokenFilters(network.token, account), start))
  const newer = events.filter(({ id }) => id > last)
  return new Set(newer.flatMap(({ topics, data }) => decodeEvent(topics, data)?.addresses ?? []))
}

/** An RPC whose latest ledger closed longer ago (ms) is behind. */
const LONGEST_DELAY_MS = 60_000

/** A period that ends after the last ledger of an RPC that is behind has not been read. */
function findDelay({ ledger, closedAt }: ClosedLedger, { to }: { to: string }): Problem[] {
  const end = Math.min(Date.parse(to), Date.now())
  if (end - Date.parse(closedAt) <= LONGEST_DELAY_MS) return []
  const problem = `the RPC ends with ledger ${ledger}, which closed at ${closedAt}: later events are missing`
  return [{ account: ALL, problem, isContradiction: true }]
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
