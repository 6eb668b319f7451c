import { reachLedger } from '#lib/stellar/ledger-error.ts'
import { LAG } from '#lib/stellar/rpc-server.ts'
import { readConfidentialAccount, readConfidentialAccounts, readDelegations } from '#lib/wallet/account.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { type Balances, type Books, compareBooks, type Problem } from './books.ts'
import { type HistoryEvent, type HistorySource, readHistory, readPayloads, tokenFilters } from './history.ts'
import { readRecentEvents } from './ledger-event.ts'
import { decodeEvent, decodePayment } from './payment.ts'
import type { ClosedLedger } from './report.ts'
import type { Statement, StatementInput, StatementLine } from './statement.ts'

/** The lines of a period, read from the ledger and the archives alone, and compared with the account's balances on the ledger. */
export interface AccountStatement {
  lines: StatementLine[]
  /** what the sources lack or contradict */
  problems: Problem[]
  /** the last ledger that the RPC had */
  through: ClosedLedger
  /** since when no payment is missing, ISO 8601; undefined if since the account's registration */
  completeFrom?: string | undefined
}

/**
 * Every payment that an account has received and sent in a period, decrypted.
 * @param period ISO 8601, of which the end is excluded
 * @param read decrypts the events, in this thread or in another
 * @throws WalletError `other-keys` if the account is registered with other keys, `archive-unavailable`, `history-incomplete`; LedgerError
 */
export async function readAccountStatement(
  network: Deployment & HistorySource,
  { address, keys }: Pick<Holder, 'address' | 'keys'>,
  period: { from: string; to: string },
  read: (input: StatementInput) => Promise<Statement>,
): Promise<AccountStatement> {
  const entry = await readConfidentialAccount(network.rpc, network.token, address)
  if (entry?.viewingKey.some((byte, index) => byte !== keys.viewingKey[index])) {
    const message = `${address} is registered with other keys: this signer can read none of its payments`
    throw new WalletError('other-keys', message)
  }
  return await readCompared(network, period, address, async (all) => {
    const events = await readPayloads(network, all)
    // Also those outside the period: each amount that was sent is compared with the balances before and after it.
    const payees = events.flatMap((event) => {
      const payment = decodePayment(event.topics, event.data)
      return payment?.from === address ? payment.to : []
    })
    const accounts = await readConfidentialAccounts(network.rpc, network.token, [...new Set(payees)])
    const viewingKeys = new Map([...accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
    return await read({ address, keys, events, viewingKeys, period })
  })
}

/** The account of a problem that concerns every account. */
export const ALL = 'all'

/** How often balances are compared at most: accounts change between reading their events and their entries, and nodes lag. */
const ROUNDS = 3

/**
 * Reads a history and compares its balances with the ledger's, again if something contradicts. Reports accounts that changed since as
 * not compared.
 */
export async function readCompared<Lines>(
  network: Deployment & HistorySource,
  period: { to: string },
  account: string | undefined,
  read: (events: readonly HistoryEvent[]) => Promise<Balances & Pick<Books, 'problems'> & { lines: Lines }>,
) {
  const readAll = async () => {
    network.signal?.throwIfAborted()
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
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
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
  network: Deployment & HistorySource,
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
