import type { Attention } from '#lib/dashboard/attention.ts'
import { BUDGET_PERCENT, SPONSOR_DAYS } from '#lib/dashboard/conditions.ts'
import { reachedAt, type Spending } from '#lib/dashboard/spending.ts'
import { type FoundProblem, LEDGERS_MISSING, LOW_FLOAT_TRANSFERS } from '#lib/server/readiness.ts'
import { parseUnits } from '#lib/text/money.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import { groupDigits, xlm } from '../figures.tsx'
import { relays, stopped } from './relay-attention.ts'
import { item, type ServiceState } from './service-item.ts'

/** Lists the conditions of the service itself that need attention, the worst first. */
export function serviceAttention(state: ServiceState): Attention[] {
  return [
    ...reachability(state),
    ...stopped(state),
    ...sponsorship(state),
    ...relays(state),
    ...archived(state),
    ...gaps(state),
  ]
}

/** The relays have variables of their own. */
const setVariable = (name: string, value: string) =>
  `Set ${name} to ${value}, in the environments of the service and its relays, and restart them.`

const FROM_SETUP = 'the value that npm run setup wrote'

/** The problem of a part in words, with the error behind it. */
const wordsOf = ({ problem, cause }: FoundProblem) => (cause === undefined ? problem : `${problem}: ${cause}`)

function reachability({ ready: { database, ledger }, problems, settings, now }: ServiceState): Attention[] {
  const items: Attention[] = []
  const ofDatabase = problems.find(({ part }) => part === 'database')
  if (!database.ok) {
    const lost = 'Nothing is lost: open transfers are settled afterwards.'
    items.push(
      item('databaseUnreachable', {
        since: ofDatabase?.since,
        why: `${ofDatabase?.cause ?? 'it does not respond'}; requests that need it get a 503, transfers a 500`,
        remedy: settings.embedsDatabase
          ? `Restart the service, which contains the database. ${lost}`
          : `Make the PostgreSQL server of DATABASE_URL reachable again, with its present data. ${lost}`,
      }),
    )
  }
  if (!ledger.ok) {
    const ofLedger = problems.find(({ part }) => part === 'ledger')
    const age = typeof ledger.age === 'number' ? ledger.age : undefined
    const value = `an RPC that follows ${settings.network.name} and keeps a week of history`
    items.push(
      item('ledgerUnreachable', {
        since: age === undefined ? ofLedger?.since : new Date(now.getTime() - age * 1_000),
        why: `${ofLedger ? wordsOf(ofLedger) : ledger.problem} (${new URL(settings.network.rpcUrl).host})${age === undefined ? '' : '; other RPCs are as late only while the network is halted'}`,
        remedy: `${setVariable('STELLAR_RPC_URL', value)} Open transfers stay open until then.`,
      }),
    )
  }
  return items
}

function sponsorship(state: ServiceState): Attention[] {
  const { ready, problems, settings, spending, limits, now } = state
  const { sponsor, ledger } = ready
  if (sponsor.configured === false) return []
  const items: Attention[] = []
  const problem = problems.find(({ part }) => part === 'sponsor')
  if (!sponsor.ok && sponsor.availableXlm !== undefined) {
    const available = parseUnits(`${sponsor.availableXlm}`)
    const reserve = (settings.sponsor?.rules.maxFee ?? 0n) * LOW_FLOAT_TRANSFERS
    const week = (spending?.spentInDay ?? 0n) * BigInt(SPONSOR_DAYS)
    const target = week > 2n * reserve ? week : 2n * reserve
    items.push(
      item('sponsorRunsDry', {
        since: problem?.since,
        why: `${xlm(available, 2)} XLM are available; ${LOW_FLOAT_TRANSFERS} transfers with the highest fee need ${xlm(reserve, 2)} XLM${spending ? `, and the last 24 hours cost ${xlm(spending.spentInDay, 2)} XLM` : ''}`,
        remedy: `Send ${groupDigits(wholeXlm(target - available))} ${settings.network.name === 'testnet' ? 'testnet ' : ''}XLM to ${sponsor.address}.`,
      }),
    )
    // While the ledger cannot be followed, that is the reason.
  } else if (!sponsor.ok && ledger.ok) {
    const what = 'The sponsor’s balance is unknown'
    const why = problem ? wordsOf(problem) : `${sponsor.problem}`
    const remedy = setVariable('STELLAR_RPC_URL', 'another RPC that keeps a week of history')
    items.push(item('sponsorRunsDry', { since: problem?.since, what, why, remedy }))
  }
  if (spending && limits && usedOf(spending) * 100n >= limits.dailyBudget * BigInt(BUDGET_PERCENT)) {
    const { count } = spending.everybody
    const [busiest] = spending.busiest
    const share =
      busiest && count > 0
        ? `; ${busiest.account} made ${groupDigits(busiest.count)} of them (its limit is ${groupDigits(limits.transfersPerAccount)})`
        : ''
    items.push(
      item('budgetNearlyUsed', {
        since: reachedAt(spending, now, (limits.dailyBudget * BigInt(BUDGET_PERCENT)) / 100n),
        why: `${groupDigits(count)} ${count === 1 ? 'transfer has' : 'transfers have'} used ${xlm(usedOf(spending), 2)} of ${xlm(limits.dailyBudget, 2)} XLM (${(usedOf(spending) * 100n) / (limits.dailyBudget || 1n)} %) since 00:00 UTC${share}`,
        remedy: `Check the busiest accounts under “Used of today’s budget”. For legitimate use, set SPONSOR_DAILY_BUDGET to ${2n * limits.dailyBudget} (stroops, twice as much) for the service and its relays, and restart them.`,
      }),
    )
  }
  return items
}

const wholeXlm = (stroops: bigint) => Number((stroops + 9_999_999n) / 10_000_000n)

const usedOf = ({ everybody }: Spending): bigint => everybody.used + everybody.held

/** How long a ledger takes on the Stellar networks. */
const LEDGER_SECONDS = 5

function archived({ ready: { archive }, problems }: ServiceState): Attention[] {
  if (archive.behind === undefined) return []
  const affected = 'wallets and auditors that read the archive'
  const ofArchive = problems.filter(({ part }) => part === 'archive')
  const late = item('archiveBehind', {
    since: ofArchive.find(({ problem }) => problem !== LEDGERS_MISSING)?.since,
    affected,
    why:
      archive.ingestedThrough === undefined
        ? 'ingestion has not started'
        : `${groupDigits(Number(archive.behind))} ledgers are not stored yet; the RPC drops the first of them in ${groupDigits(Number(archive.historyLeft))} ledgers (about ${Math.round((Number(archive.historyLeft) * LEDGER_SECONDS) / 3600)} h)`,
    remedy:
      'Search the service’s log for “archive”: it names what ingestion waits for. It has no such line where no scheduler calls /api/cron/sweep.',
  })
  const gap = item('archiveGap', {
    since: ofArchive.find(({ problem }) => problem === LEDGERS_MISSING)?.since,
    affected,
    why: `the RPC dropped ledgers between ${groupDigits(Number(archive.missingFrom))} and ${groupDigits(Number(archive.missingThrough))} before they were stored`,
    remedy: `${setVariable('STELLAR_RPC_URL', 'an RPC that still has them')} The gap is then filled (docs/operate.md, “PayrollArchiveGap”).`,
  })
  return [...(archive.ok ? [] : [late]), ...(Number(archive.gaps) > 0 ? [gap] : [])]
}

/** Keys that every payroll needs. "Not configured" lists the others. */
function gaps({ settings: { sponsor, token }, startedAt: since }: ServiceState): Attention[] {
  const items: Attention[] = []
  if (!sponsor) {
    items.push(
      item('sponsorMissing', {
        since,
        why: 'this process started without SPONSOR_SEED',
        remedy: setVariable('SPONSOR_SEED', FROM_SETUP),
      }),
    )
  }
  if (!token) {
    items.push(
      item('tokenMissing', {
        since,
        why: 'this process started without CONFIDENTIAL_TOKEN',
        remedy: setVariable('CONFIDENTIAL_TOKEN', FROM_SETUP),
      }),
    )
  } else if (sponsor && !paysForAnything(sponsor.rules)) {
    items.push(
      item('nothingSponsored', {
        since,
        why: 'SPONSOR_CONTRACTS is none or empty: nothing else stops all payments, so an operator may have done it on purpose',
        remedy:
          'Ask the other operators who stopped the payments. To resume them, remove SPONSOR_CONTRACTS from the environments of the service and its relays, and restart them.',
      }),
    )
  }
  return items
}
