import type { Attention } from '#lib/dashboard/attention.ts'
import { type ChannelLine, PROBLEM_EXPLANATIONS } from '#lib/dashboard/channels.ts'
import type { Spending } from '#lib/dashboard/spending.ts'
import type { Readiness } from '#lib/server/readiness.ts'
import type { Settings } from '#lib/server/settings.ts'
import { parseUnits } from '#lib/text/money.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'

export interface ServiceState {
  ready: Readiness
  settings: Settings
  spending: Spending | undefined
  limits: QuotaLimits | undefined
  channels: readonly ChannelLine[]
  /** the service starts a relay of its own, and began only a moment ago */
  startsRelay: boolean
}

/** The sponsor should last for so many days. */
const ENOUGH_DAYS = 7n

/** The matters of the service itself that need a person, the worst first. */
export function serviceAttention(state: ServiceState): Attention[] {
  return [...reachability(state), ...sponsorship(state), ...relays(state), ...gaps(state)]
}

const asked = (key: string, level: Attention['level'], what: string, rest: Partial<Attention>): Attention => ({
  key,
  level,
  what,
  since: undefined,
  why: '',
  remedy: '',
  actor: 'operator',
  page: '',
  ...rest,
})

function reachability({ ready }: ServiceState): Attention[] {
  const { database, ledger } = ready
  return [
    ...(database.ok
      ? []
      : [
          asked('database', 'bad', 'The database cannot be reached', {
            why: 'requests that need it get 503, transfers 500',
            remedy: 'Bring it back, or correct DATABASE_URL. Nothing is lost: open transfers are decided afterwards.',
          }),
        ]),
    ...(ledger.ok
      ? []
      : [
          asked('ledger', 'bad', 'The ledger cannot be followed', {
            why: `${ledger.problem}`,
            remedy: 'Bring the RPC back, or name another in STELLAR_RPC_URL. Transfers stay open meanwhile.',
          }),
        ]),
  ]
}

function sponsorship({ ready, spending, limits }: ServiceState): Attention[] {
  const { sponsor } = ready
  if (sponsor.configured === false) return []
  const address = String(sponsor.address ?? 'the sponsor')
  const balance = typeof sponsor.availableXlm === 'string' ? parseUnits(sponsor.availableXlm) : undefined
  const days = balance === undefined || !spending || spending.perDay === 0n ? undefined : balance / spending.perDay
  const isDry = days !== undefined && days < ENOUGH_DAYS
  const used = spending ? spending.everybody.used + spending.everybody.held : 0n
  return [
    ...(sponsor.ok && !isDry
      ? []
      : [
          asked('sponsor', sponsor.ok ? 'late' : 'bad', 'The sponsor runs dry', {
            why:
              days === undefined
                ? `${sponsor.problem}`
                : `its balance lasts ${days === 0n ? 'less than a day' : `${days} days`}`,
            remedy: `Send XLM to ${address}.`,
          }),
        ]),
    ...(limits && used * 5n >= limits.dailyBudget * 4n
      ? [
          asked('budget', 'late', 'Today’s budget is nearly used', {
            why: `${(used * 100n) / (limits.dailyBudget || 1n)} % of it`,
            remedy: 'Raise SPONSOR_DAILY_BUDGET, or wait for 00:00 UTC: then transfers are paid again.',
          }),
        ]
      : []),
  ]
}

function relays({ ready: { relay, database }, settings, channels, startsRelay }: ServiceState): Attention[] {
  if (relay.configured === false || !database.ok || startsRelay) return []
  const unable = channels.filter(({ isRunning, problem }) => isRunning && problem !== null)
  return [
    ...(relay.channels === 0
      ? [
          asked('relay', 'bad', 'No relay is running', {
            why: 'jobs wait',
            remedy: settings.embedsDatabase
              ? 'The service starts it: its log says why it did not.'
              : 'Start one with npm run relay.',
            page: '/jobs',
          }),
        ]
      : []),
    ...unable.map(({ address, problem, seenAt }) =>
      asked(`channel ${address}`, relay.ok ? 'late' : 'bad', 'A channel cannot pay', {
        since: seenAt,
        why: `${address.slice(0, 4)}…${address.slice(-4)}: ${problem ? PROBLEM_EXPLANATIONS[problem].meaning : ''}`,
        remedy: problem ? `${PROBLEM_EXPLANATIONS[problem].remedy}.` : '',
        page: '/jobs',
      }),
    ),
  ]
}

/** Keys without which no payroll goes through; the rest stands under "Not configured". */
function gaps({ settings }: ServiceState): Attention[] {
  const { sponsor, token } = settings
  const gap = (is: boolean, what: string, ...variables: string[]) =>
    is ? [asked(what, 'late', what, { why: 'not configured', remedy: `Set ${variables.join(' and ')}.` })] : []
  return [
    ...gap(
      !sponsor,
      'No fees are paid: every transfer is turned away',
      'SPONSOR_SEED',
      ...(token ? [] : ['CONFIDENTIAL_TOKEN']),
    ),
    ...gap(
      sponsor !== undefined && !paysForAnything(sponsor.rules),
      'Every transfer is refused: there is nothing to pay for',
      token ? 'SPONSOR_CONTRACTS' : 'CONFIDENTIAL_TOKEN',
    ),
    ...gap(!token, 'No contractor becomes ready, and there is no vault', 'CONFIDENTIAL_TOKEN'),
  ]
}
