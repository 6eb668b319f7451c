import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import type { Attention } from '#lib/dashboard/attention.ts'
import { PROBLEM_EXPLANATIONS, RECONCILE_EXPLANATIONS, START_RELAY } from '#lib/dashboard/channels.ts'
import { RECONCILE_PATIENCE_MS } from '#lib/relay/resume.ts'
import { item, type ServiceState } from './service-item.ts'

/** A stop of all payments ends by itself; an operator is needed for what a channel's line names. */
export function stopped({ stop, channels, now }: ServiceState): Attention[] {
  if (!stop) return []
  const isOld = now.getTime() - stop.since.getTime() > RECONCILE_PATIENCE_MS
  const causes = channels.flatMap(({ address, isRetired, reconcileProblem, reconciledStop }) => {
    const name = `${address.slice(0, 4)}…${address.slice(-4)}`
    if (reconcileProblem !== null) return [`${name}: ${RECONCILE_EXPLANATIONS[reconcileProblem]}`]
    const isDone = isRetired || reconciledStop?.getTime() === stop.since.getTime()
    return isDone || !isOld ? [] : [`${name}: no running relay has its key: start one that has, or retire the channel`]
  })
  return [
    item('paymentsStopped', {
      since: stop.since,
      affected: 'every job and run, and clients that pay older payouts',
      why: `the ledger shows transactions of a channel that this database does not have, as after a restore from a backup; ${stop.found} payments were found`,
      causes,
      remedy:
        causes.length === 0
          ? 'Wait a few minutes: the relays reconcile every channel with the ledger, and payments go on by themselves.'
          : 'Follow docs/operate.md, “Payments are stopped”: it says what passes by itself, and what to check before you resume.',
      isStop: true,
      page: '/jobs',
    }),
  ]
}

/** Who is affected by a channel's problem, unless it is everything that the channel would pay. Runs are paid from escrow. */
const AFFECTED: Partial<Record<ChannelProblem, string>> = {
  balance: 'jobs that the channel would pay; it still pays runs',
  history: 'jobs that the channel would pay; it still pays runs',
}

const UNCHECKED_MS = 60_000

export function relays(state: ServiceState): Attention[] {
  const { ready, problems, settings, channels, startsRelay, now } = state
  const { relay, database } = ready
  if (relay.configured === false || !database.ok || startsRelay) return []
  const items = channels.flatMap(({ address, isRunning, isRetired, problem, problemSince }) => {
    // A channel that was just announced has this problem until its first check.
    const isUnchecked = problem === 'account' && problemSince && now.getTime() - problemSince.getTime() < UNCHECKED_MS
    if (!isRunning || isRetired || problem === null || isUnchecked) return []
    const { meaning, remedy } = PROBLEM_EXPLANATIONS[problem]
    return item('channelProblem', {
      key: `channel ${address}`,
      level: relay.ok ? 'late' : 'bad',
      since: problemSince ?? undefined,
      name: `Channel ${address.slice(0, 4)}…${address.slice(-4)}`,
      affected: AFFECTED[problem] ?? 'jobs and runs that the channel would pay',
      why: meaning,
      remedy: `${remedy.replace('its address', address)}.`,
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
