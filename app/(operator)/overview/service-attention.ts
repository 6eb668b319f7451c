import type { Attention } from '#lib/dashboard/attention.ts'
import { type ChannelLine, PROBLEM_EXPLANATIONS } from '#lib/dashboard/channels.ts'
import { BUDGET_PERCENT, CONDITIONS } from '#lib/dashboard/conditions.ts'
import type { Spending } from '#lib/dashboard/spending.ts'
import type { Readiness } from '#lib/server/readiness.ts'
import type { Settings } from '#lib/server/settings.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'

export interface ServiceState {
  ready: Readiness
  settings: Settings
  spending: Spending | undefined
  limits: QuotaLimits | undefined
  channels: readonly ChannelLine[]
  /** the service starts its own relay, and has only just started itself */
  startsRelay: boolean
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
  why: '',
  remedy: '',
  actor: 'operator',
  page: '',
  ...details,
})

function reachability({ ready: { database, ledger } }: ServiceState): Attention[] {
  const items: Attention[] = []
  if (!database.ok) {
    items.push(
      item('databaseUnreachable', {
        why: 'requests that need it respond 503, transfers 500',
        remedy: 'Restore it, or correct DATABASE_URL. Nothing is lost: open transfers are settled afterwards.',
      }),
    )
  }
  if (!ledger.ok) {
    items.push(
      item('ledgerUnreachable', {
        why: `${ledger.problem}`,
        remedy: 'Restore the RPC, or set STELLAR_RPC_URL to another one. Transfers stay open until then.',
      }),
    )
  }
  return items
}

function sponsorship({ ready: { sponsor }, spending, limits }: ServiceState): Attention[] {
  if (sponsor.configured === false) return []
  const used = spending ? spending.everybody.used + spending.everybody.held : 0n
  const items: Attention[] = []
  if (!sponsor.ok) {
    items.push(
      item('sponsorRunsDry', {
        why: `${sponsor.problem}`,
        remedy: `Send XLM to ${sponsor.address ?? 'the sponsor'}.`,
      }),
    )
  }
  if (limits && used * 100n >= limits.dailyBudget * BigInt(BUDGET_PERCENT)) {
    items.push(
      item('budgetNearlyUsed', {
        why: `${(used * 100n) / (limits.dailyBudget || 1n)} % of it`,
        remedy: 'Raise SPONSOR_DAILY_BUDGET, or wait until 00:00 UTC, when the budget is reset.',
      }),
    )
  }
  return items
}

function relays({ ready: { relay, database }, settings, channels, startsRelay }: ServiceState): Attention[] {
  if (relay.configured === false || !database.ok || startsRelay) return []
  const items = channels.flatMap(({ address, isRunning, problem, movedAt }) => {
    if (!isRunning || problem === null) return []
    const { meaning, remedy } = PROBLEM_EXPLANATIONS[problem]
    return item('channelProblem', {
      key: `channel ${address}`,
      level: relay.ok ? 'late' : 'bad',
      since: movedAt ?? undefined,
      name: `Channel ${address.slice(0, 4)}…${address.slice(-4)}`,
      why: meaning,
      remedy: `${remedy}.`,
      ...(problem === 'moved' && { heldChannel: address }),
      page: '/jobs',
    })
  })
  if (relay.channels !== 0) return items
  const remedy = settings.embedsDatabase
    ? 'The service starts it; see its log for why it did not.'
    : 'Start one with npm run relay.'
  return [item('relayStopped', { why: 'jobs are waiting', remedy, page: '/jobs' }), ...items]
}

function archived({ ready: { archive } }: ServiceState): Attention[] {
  if (archive.behind === undefined) return []
  const late = item('archiveBehind', {
    why:
      archive.ingestedThrough === undefined
        ? 'ingestion has not started'
        : `${archive.behind} ledgers are not stored yet; the RPC drops the first of them in ${archive.historyLeft} ledgers`,
    remedy: 'Search the log for “archive”. On serverless hosts, a scheduler must call /api/cron/sweep.',
  })
  const gap = item('archiveGap', {
    why: 'the RPC dropped ledgers before they were stored',
    remedy: 'Set STELLAR_RPC_URL to an RPC that still has them. The gap is then filled.',
  })
  return [...(archive.ok ? [] : [late]), ...(Number(archive.gaps) > 0 ? [gap] : [])]
}

/** Keys that every payroll needs. "Not configured" lists the others. */
function gaps({ settings: { sponsor, token } }: ServiceState): Attention[] {
  const gap = (isMissing: boolean, name: NoticeName, ...variables: string[]) =>
    isMissing ? [item(name, { why: 'not configured', remedy: `Set ${variables.join(' and ')}.` })] : []
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
