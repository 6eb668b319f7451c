import { FOREIGN } from '#lib/archive/identity.ts'
import type { Attention } from '#lib/dashboard/attention.ts'
import { reachedAt } from '#lib/dashboard/spending.ts'
import { groupDigits, xlm } from '#lib/text/figures.ts'
import { parseUnits } from '#lib/text/money.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import { type FoundProblem, LEDGERS_MISSING, LOW_FLOAT_TRANSFERS } from './readiness.ts'
import { channelProblem, paymentsStopped, relayStopped } from './relay-attention.ts'
import { describeService, type ServiceCondition, type ServiceState } from './service-condition.ts'

/** The sponsor's balance should last this many days. docs/alerts.yml has the same number. */
export const SPONSOR_DAYS = 7
/** The daily budget is nearly used from this percentage on. docs/alerts.yml has the same. */
export const BUDGET_PERCENT = 80

const READERS = 'wallets and auditors that read the archive'
const NOTHING_LOST = 'Nothing is lost: open transfers are settled afterwards.'

/** How long a ledger takes on the Stellar networks. */
const LEDGER_SECONDS = 5

/** The relays have variables of their own. */
const setVariable = (name: string, value: string): string =>
  `Set ${name} to ${value}, in the environments of the service and its relays, and restart them.`

const problemOf = ({ problems }: ServiceState, of: FoundProblem['part']) => problems.find(({ part }) => part === of)

/** The problem of a part in words, with the error behind it. */
const wordsOf = ({ problem, cause }: FoundProblem) => (cause === undefined ? problem : `${problem}: ${cause}`)

const wholeXlm = (stroops: bigint) => Number((stroops + 9_999_999n) / 10_000_000n)

/** A variable that every payroll needs is not set. "Not configured" lists the others. */
const notSet = (name: string, since: Date) => ({
  since,
  why: `this process started without ${name}`,
  remedy: setVariable(name, 'the value that npm run setup wrote'),
})

/** The conditions of the service itself, the worst first. */
const CONDITIONS: Record<string, ServiceCondition> = {
  databaseUnreachable: {
    level: 'bad',
    what: 'The database cannot be reached',
    describe: (state) => {
      if (state.ready.database.ok) return undefined
      const problem = problemOf(state, 'database')
      return {
        since: problem?.since,
        why: `${problem?.cause ?? 'it does not respond'}; requests that need it get a 503, transfers a 500`,
        remedy: state.settings.embedsDatabase
          ? `Restart the service, which contains the database. ${NOTHING_LOST}`
          : `Make the PostgreSQL server of DATABASE_URL reachable again, with its present data. ${NOTHING_LOST}`,
      }
    },
  },
  ledgerUnreachable: {
    level: 'bad',
    what: 'The ledger cannot be followed',
    describe: (state) => {
      const { ready, settings, now } = state
      if (ready.ledger.ok) return undefined
      const problem = problemOf(state, 'ledger')
      if (problem?.problem === FOREIGN) {
        return {
          since: problem.since,
          what: 'The RPC serves another network',
          why: `${FOREIGN} (${new URL(settings.network.rpcUrl).host}). Nothing is paid, archived or ended`,
          remedy: 'Follow docs/operate.md, “The RPC serves another network”.',
        }
      }
      const age = typeof ready.ledger.age === 'number' ? ready.ledger.age : undefined
      const rpc = `an RPC that follows ${settings.network.name} and keeps a week of history`
      return {
        since: age === undefined ? problem?.since : new Date(now.getTime() - age * 1_000),
        why: `${problem ? wordsOf(problem) : ready.ledger.problem} (${new URL(settings.network.rpcUrl).host})${age === undefined ? '' : '; other RPCs are as late only while the network is halted'}`,
        remedy: `${setVariable('STELLAR_RPC_URL', rpc)} Open transfers stay open until then.`,
      }
    },
  },
  paymentsStopped,
  sponsorRunsDry: {
    level: 'bad',
    what: 'The sponsor’s balance is low',
    describe: (state) => {
      const { ready, settings, spending } = state
      const { sponsor, ledger } = ready
      if (sponsor.configured === false || sponsor.ok) return undefined
      const problem = problemOf(state, 'sponsor')
      if (sponsor.availableXlm === undefined) {
        // While the ledger cannot be followed, that is the reason.
        if (!ledger.ok) return undefined
        return {
          since: problem?.since,
          what: 'The sponsor’s balance is unknown',
          why: problem ? wordsOf(problem) : `${sponsor.problem}`,
          remedy: setVariable('STELLAR_RPC_URL', 'another RPC that keeps a week of history'),
        }
      }
      const available = parseUnits(`${sponsor.availableXlm}`)
      const reserve = (settings.sponsor?.rules.maxFee ?? 0n) * LOW_FLOAT_TRANSFERS
      const week = (spending?.spentInDay ?? 0n) * BigInt(SPONSOR_DAYS)
      const target = week > 2n * reserve ? week : 2n * reserve
      return {
        since: problem?.since,
        why: `${xlm(available, 2)} XLM are available; ${LOW_FLOAT_TRANSFERS} transfers with the highest fee need ${xlm(reserve, 2)} XLM${spending ? `, and the last 24 hours cost ${xlm(spending.spentInDay, 2)} XLM` : ''}`,
        remedy: `Send ${groupDigits(wholeXlm(target - available))} ${settings.network.name === 'testnet' ? 'testnet ' : ''}XLM to ${sponsor.address}.`,
      }
    },
  },
  budgetNearlyUsed: {
    level: 'late',
    what: 'Today’s budget is nearly used',
    describe: ({ ready, spending, limits, now }) => {
      if (ready.sponsor.configured === false || !spending || !limits) return undefined
      const { dailyBudget, transfersPerAccount } = limits
      const { count, used, held } = spending.everybody
      const percent = ((used + held) * 100n) / (dailyBudget || 1n)
      if ((used + held) * 100n < dailyBudget * BigInt(BUDGET_PERCENT)) return undefined
      const [busiest] = spending.busiest
      const share =
        busiest && count > 0
          ? `; ${busiest.account} made ${groupDigits(busiest.count)} of them (its limit is ${groupDigits(transfersPerAccount)})`
          : ''
      return {
        since: reachedAt(spending, now, (dailyBudget * BigInt(BUDGET_PERCENT)) / 100n),
        why: `${groupDigits(count)} ${count === 1 ? 'transfer has' : 'transfers have'} used ${xlm(used + held, 2)} of ${xlm(dailyBudget, 2)} XLM (${percent} %) since 00:00 UTC${share}`,
        remedy: `Check the busiest accounts under “Used of today’s budget”. For legitimate use, set SPONSOR_DAILY_BUDGET to ${2n * dailyBudget} (stroops, twice as much) for the service and its relays, and restart them.`,
      }
    },
  },
  relayStopped,
  channelProblem,
  archiveBehind: {
    level: 'late',
    what: 'The archive is far behind',
    affected: READERS,
    describe: ({ ready: { archive }, problems }) => {
      if (archive.behind === undefined || archive.ok) return undefined
      const [behind, left] = [Number(archive.behind), Number(archive.historyLeft)]
      return {
        since: problems.find(({ part, problem }) => part === 'archive' && problem !== LEDGERS_MISSING)?.since,
        why:
          archive.ingestedThrough === undefined
            ? 'ingestion has not started'
            : `${groupDigits(behind)} ledgers are not stored yet; the RPC drops the first of them in ${groupDigits(left)} ledgers (about ${Math.round((left * LEDGER_SECONDS) / 3600)} h)`,
        remedy:
          'Search the service’s log for “archive”: it names what ingestion waits for. It has no such line where no scheduler calls /api/cron/sweep.',
      }
    },
  },
  archiveGap: {
    level: 'late',
    what: 'The archive has a gap',
    affected: READERS,
    describe: ({ ready: { archive }, problems }) => {
      if (archive.behind === undefined || !(Number(archive.gaps) > 0)) return undefined
      return {
        since: problems.find(({ part, problem }) => part === 'archive' && problem === LEDGERS_MISSING)?.since,
        why: `the RPC dropped ledgers between ${groupDigits(Number(archive.missingFrom))} and ${groupDigits(Number(archive.missingThrough))} before they were stored`,
        remedy: `${setVariable('STELLAR_RPC_URL', 'an RPC that still has them')} The gap is then filled (docs/operate.md, “PayrollArchiveGap”).`,
      }
    },
  },
  sponsorMissing: {
    level: 'late',
    what: 'Every transfer is refused: no fees are paid',
    describe: ({ settings, startedAt }) => (settings.sponsor ? undefined : notSet('SPONSOR_SEED', startedAt)),
  },
  tokenMissing: {
    level: 'late',
    what: 'Every transfer is refused, and no contractor becomes ready: no token is configured',
    describe: ({ settings, startedAt }) => (settings.token ? undefined : notSet('CONFIDENTIAL_TOKEN', startedAt)),
  },
  nothingSponsored: {
    level: 'late',
    what: 'Every transfer is refused: no contract is sponsored',
    describe: ({ settings: { token, sponsor }, startedAt: since }) => {
      if (!token || !sponsor || paysForAnything(sponsor.rules)) return undefined
      return {
        since,
        why: 'SPONSOR_CONTRACTS is none or empty: nothing else stops all payments, so an operator may have done it on purpose',
        remedy:
          'Ask the other operators who stopped the payments. To resume them, remove SPONSOR_CONTRACTS from the environments of the service and its relays, and restart them.',
      }
    },
  },
}

export const serviceAttention = (state: ServiceState): Attention[] => describeService(CONDITIONS, state)
