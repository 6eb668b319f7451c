import type { Attention } from '#lib/dashboard/attention.ts'
import { type ChannelLine, PROBLEM_EXPLANATIONS } from '#lib/dashboard/channels.ts'
import { BUDGET_PERCENT, CONDITIONS } from '#lib/dashboard/conditions.ts'
import type { Spending } from '#lib/dashboard/spending.ts'
import type { ProblemTimes, Readiness } from '#lib/server/readiness.ts'
import type { Settings } from '#lib/server/settings.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'

export interface ServiceState {
  ready: Readiness
  /** since when this process has found a problem with each part */
  since: ProblemTimes
  settings: Settings
  spending: Spending | undefined
  limits: QuotaLimits | undefined
  channels: readonly ChannelLine[]
  /** the service starts its own relay, and has only just started itself */
  startsRelay: boolean
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

function reachability({ ready: { database, ledger }, since, now }: ServiceState): Attention[] {
  const items: Attention[] = []
  if (!database.ok) {
    items.push(
      item('databaseUnreachable', {
        since: since.database,
        why: 'requests that need it respond 503, transfers 500',
        remedy: 'Start the server at DATABASE_URL again. Nothing is lost: open transfers are settled afterwards.',
      }),
    )
  }
  if (!ledger.ok) {
    items.push(
      item('ledgerUnreachable', {
        since: typeof ledger.age === 'number' ? new Date(now.getTime() - ledger.age * 1_000) : since.ledger,
        why: `${ledger.problem}`,
        remedy: 'Set STELLAR_RPC_URL to an RPC that follows the network, and restart. Transfers stay open until then.',
      }),
    )
  }
  return items
}

function sponsorship({ ready: { sponsor, ledger }, since, spending, limits }: ServiceState): Attention[] {
  if (sponsor.configured === false) return []
  const used = spending ? spending.everybody.used + spending.everybody.held : 0n
  const items: Attention[] = []
  if (!sponsor.ok && sponsor.availableXlm !== undefined) {
    items.push(
      item('sponsorRunsDry', {
        since: since.sponsor,
        why: `${sponsor.problem}: ${sponsor.availableXlm} XLM`,
        remedy: `Send XLM to ${sponsor.address}.`,
      }),
    )
    // While the ledger cannot be followed, that is the reason.
  } else if (!sponsor.ok && ledger.ok) {
    const remedy = 'Search the log for “readiness”: it shows why.'
    const what = 'The sponsor’s balance is unknown'
    items.push(item('sponsorRunsDry', { since: since.sponsor, what, why: `${sponsor.problem}`, remedy }))
  }
  if (limits && used * 100n >= limits.dailyBudget * BigInt(BUDGET_PERCENT)) {
    items.push(
      item('budgetNearlyUsed', {
        why: `${(used * 100n) / (limits.dailyBudget || 1n)} % of it`,
        remedy: 'Raise SPONSOR_DAILY_BUDGET. The budget is reset at 00:00 UTC.',
      }),
    )
  }
  return items
}

function relays({ ready: { relay, database }, since, settings, channels, startsRelay }: ServiceState): Attention[] {
  if (relay.configured === false || !database.ok || startsRelay) return []
  const items = channels.flatMap(({ address, isRunning, problem, problemSince }) => {
    if (!isRunning || problem === null) return []
    const { meaning, remedy } = PROBLEM_EXPLANATIONS[problem]
    return item('channelProblem', {
      key: `channel ${address}`,
      level: relay.ok ? 'late' : 'bad',
      since: problemSince ?? undefined,
      name: `Channel ${address.slice(0, 4)}…${address.slice(-4)}`,
      affected: 'jobs and runs that the channel would pay',
      why: meaning,
      remedy: `${remedy}.`,
      ...(problem === 'moved' && { heldChannel: address }),
      page: '/jobs',
    })
  })
  if (relay.channels !== 0) return items
  const seen = channels.map(({ seenAt }) => seenAt.getTime())
  const stopped = item('relayStopped', {
    since: seen.length === 0 ? since.relay : new Date(Math.max(...seen)),
    affected: 'every job and run',
    why: 'no relay has announced a channel for a minute',
    remedy: settings.embedsDatabase
      ? 'Search the service’s log for “relay”: the service runs the relay itself.'
      : 'Start one with npm run relay.',
    page: '/jobs',
  })
  return [stopped, ...items]
}

function archived({ ready: { archive }, since }: ServiceState): Attention[] {
  if (archive.behind === undefined) return []
  const affected = 'wallets and auditors that read the archive'
  const late = item('archiveBehind', {
    since: since.archive,
    affected,
    why:
      archive.ingestedThrough === undefined
        ? 'ingestion has not started'
        : `${archive.behind} ledgers are not stored yet; the RPC drops the first of them in ${archive.historyLeft} ledgers`,
    remedy: 'Search the log for “archive”: it shows what ingestion waits for.',
  })
  const gap = item('archiveGap', {
    since: since.archive,
    affected,
    why: 'the RPC dropped ledgers before they were stored',
    remedy: 'Set STELLAR_RPC_URL to an RPC that still has them. The gap is then filled.',
  })
  return [...(archive.ok ? [] : [late]), ...(Number(archive.gaps) > 0 ? [gap] : [])]
}

/** Keys that every payroll needs. "Not configured" lists the others. */
function gaps({ settings: { sponsor, token } }: ServiceState): Attention[] {
  const gap = (isMissing: boolean, name: NoticeName, ...variables: string[]) =>
    isMissing
      ? [item(name, { why: `${variables.join(' and ')}: not set, or none`, remedy: `Set ${variables.join(' and ')}.` })]
      : []
  return [
    ...gap(!sponsor, 'sponsorMissing', 'SPONSOR_SEED', ...(token ? [] : ['CONFIDENTIAL_TOKEN'])),
    ...gap(
      sponsor !== undefined && !paysForAnything(sponsor.rules),
      'nothingSponsored',
      token ? 'SPONSOR_CONTRACTS' : 'CONFIDENTIAL_TOKEN',
    ),
    ...gap(!token, 'tokenMissing', 'CONFIDENTIAL_TOKEN'),
  ]
}
