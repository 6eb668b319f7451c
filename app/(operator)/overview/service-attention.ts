import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import type { Attention } from '#lib/dashboard/attention.ts'
import { type ChannelLine, PROBLEM_EXPLANATIONS, START_RELAY } from '#lib/dashboard/channels.ts'
import { BUDGET_PERCENT, CONDITIONS, SPONSOR_DAYS } from '#lib/dashboard/conditions.ts'
import { reachedAt, type Spending } from '#lib/dashboard/spending.ts'
import { RELEASE_REFUSAL_EXPLANATIONS } from '#lib/relay/release-request.ts'
import { type FoundProblem, LEDGERS_MISSING, LOW_FLOAT_TRANSFERS, type Readiness } from '#lib/server/readiness.ts'
import type { Settings } from '#lib/server/settings.ts'
import { parseUnits } from '#lib/text/money.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'
import { groupDigits, xlm } from '../figures.tsx'

export interface ServiceState {
  ready: Readiness
  /** the problems behind `ready`, with their times */
  problems: readonly FoundProblem[]
  settings: Settings
  spending: Spending | undefined
  limits: QuotaLimits | undefined
  channels: readonly ChannelLine[]
  /** the service starts its own relay, and has only just started itself */
  startsRelay: boolean
  /** when this process started: its settings are as old */
  startedAt: Date
  now: Date
}

/** Lists the conditions of the service itself that need attention, the worst first. */
export function serviceAttention(state: ServiceState): Attention[] {
  return [...reachability(state), ...sponsorship(state), ...relays(state), ...archived(state), ...gaps(state)]
}

type NoticeName = {
  [Name in keyof typeof CONDITIONS]: (typeof CONDITIONS)[Name] extends { notice: { what: string } } ? Name : never
}[keyof typeof CONDITIONS]

const item = (name: NoticeName, details: Partial<Attention>): Attention => ({
  ...CONDITIONS[name].notice,
  key: name,
  since: undefined,
  affected: 'every organisation',
  why: '',
  remedy: '',
  actor: 'operator',
  page: '',
  ...details,
})

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

/** Who is affected by a channel's problem, unless it is everything that the channel would pay. Runs are paid from escrow. */
const AFFECTED: Partial<Record<ChannelProblem, string>> = {
  balance: 'jobs that the channel would pay; it still pays runs',
  history: 'jobs that the channel would pay; it still pays runs',
  moved: 'every job and run that was queued before, on all channels',
}

const usedOf = ({ everybody }: Spending): bigint => everybody.used + everybody.held

const UNCHECKED_MS = 60_000

function relays(state: ServiceState): Attention[] {
  const { ready, problems, settings, channels, startsRelay, now } = state
  const { relay, database } = ready
  if (relay.configured === false || !database.ok || startsRelay) return []
  const items = channels.flatMap(({ address, isRunning, problem, problemSince, releaseRefusal }) => {
    // A channel that was just announced or released has this problem until its first check.
    const isUnchecked = problem === 'account' && problemSince && now.getTime() - problemSince.getTime() < UNCHECKED_MS
    if (!isRunning || problem === null || isUnchecked) return []
    const { meaning, remedy } = PROBLEM_EXPLANATIONS[problem]
    return item('channelProblem', {
      key: `channel ${address}`,
      level: relay.ok && problem !== 'moved' ? 'late' : 'bad',
      since: problemSince ?? undefined,
      name: `Channel ${address.slice(0, 4)}…${address.slice(-4)}`,
      affected: AFFECTED[problem] ?? 'jobs and runs that the channel would pay',
      why: `${meaning}${releaseRefusal ? `; the last release was refused: ${RELEASE_REFUSAL_EXPLANATIONS[releaseRefusal]}` : ''}`,
      remedy: `${remedy.replace('its address', address)}.`,
      ...(problem === 'moved' && { heldChannel: address }),
      page: '/jobs',
    })
  })
  if (relay.channels !== 0) return items
  const seen = channels.map(({ seenAt }) => seenAt.getTime())
  const stopped = item('relayStopped', {
    since: seen.length === 0 ? problems.find(({ part }) => part === 'relay')?.since : new Date(Math.max(...seen)),
    affected: 'every job and run',
    why:
      seen.length === 0
        ? 'no relay for this token has ever used this database'
        : `${seen.length === 1 ? 'its channel has not' : `none of its ${seen.length} channels has`} been announced since`,
    remedy: settings.embedsDatabase
      ? 'Restart the service, which runs the relay: its log names what stopped it in the lines with “relay”.'
      : seen.length === 0
        ? 'Set up a relay with this DATABASE_URL and CONFIDENTIAL_TOKEN as in docs/deploy.md, “Relays on several machines”.'
        : `${START_RELAY}: its log names what stopped it.`,
    page: '/jobs',
  })
  return [stopped, ...items]
}

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
