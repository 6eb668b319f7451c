import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { PROBLEM_EXPLANATIONS, RECONCILE_EXPLANATIONS, START_RELAY } from '#lib/dashboard/channels.ts'
import { RECONCILE_PATIENCE_MS } from '#lib/relay/resume.ts'
import type { ServiceCondition, ServiceState } from './service-condition.ts'

const shorten = (address: string) => `${address.slice(0, 4)}…${address.slice(-4)}`

/** A stop of all payments ends by itself; an operator is needed for what a channel's line names. */
export const paymentsStopped: ServiceCondition = {
  level: 'bad',
  what: 'Payments are stopped',
  affected: 'every job and run, and clients that pay older payouts',
  page: '/jobs',
  describe: ({ stop, channels, now }) => {
    if (!stop) return undefined
    const isOld = now.getTime() - stop.since.getTime() > RECONCILE_PATIENCE_MS
    const causes = channels.flatMap(({ address, isRetired, reconcileProblem, reconciledStop }) => {
      const name = shorten(address)
      if (reconcileProblem !== null) return `${name}: ${RECONCILE_EXPLANATIONS[reconcileProblem]}`
      const isDone = isRetired || reconciledStop?.getTime() === stop.since.getTime()
      return isDone || !isOld ? [] : `${name}: no running relay has its key: start one that has, or retire the channel`
    })
    return {
      since: stop.since,
      why: `the ledger shows transactions of a channel that this database does not have, as after a restore from a backup; ${stop.found} payments were found`,
      causes,
      remedy:
        causes.length === 0
          ? 'Wait a few minutes: the relays reconcile every channel with the ledger, and payments go on by themselves.'
          : 'Follow docs/operate.md, “Payments are stopped”: it says what passes by itself, and what to check before you resume.',
      isStop: true,
    }
  },
}

const isExpected = ({ ready: { relay, database }, startsRelay }: ServiceState) =>
  relay.configured !== false && database.ok && !startsRelay

export const relayStopped: ServiceCondition = {
  level: 'bad',
  what: 'No relay is running',
  affected: 'every job and run',
  page: '/jobs',
  describe: (state) => {
    const { ready, problems, settings, channels } = state
    if (!isExpected(state) || ready.relay.channels !== 0) return undefined
    const seen = channels.map(({ seenAt }) => seenAt.getTime())
    const wasSeen = seen.length > 0
    const relays = seen.length === 1 ? 'its channel has not' : `none of its ${seen.length} channels has`
    return {
      since: wasSeen ? new Date(Math.max(...seen)) : problems.find(({ part }) => part === 'relay')?.since,
      why: wasSeen ? `${relays} been announced since` : 'no relay for this token has ever used this database',
      remedy: settings.embedsDatabase
        ? 'Restart the service, which runs the relay: its log names what stopped it in the lines with “relay”.'
        : wasSeen
          ? `${START_RELAY}: its log names what stopped it.`
          : 'Set up a relay with this DATABASE_URL and CONFIDENTIAL_TOKEN as in docs/deploy.md, “Relays on several machines”.',
    }
  },
}

/** Who is affected by a channel's problem, unless it is everything that the channel would pay. Runs are paid from escrow. */
const AFFECTED: Partial<Record<ChannelProblem, string>> = {
  balance: 'jobs that the channel would pay; it still pays runs',
  history: 'jobs that the channel would pay; it still pays runs',
}

const UNCHECKED_MS = 60_000

export const channelProblem: ServiceCondition = {
  level: 'late',
  what: 'cannot pay',
  page: '/jobs',
  describe: (state) => {
    const { ready, channels, now } = state
    if (!isExpected(state)) return undefined
    return channels.flatMap(({ address, isRunning, isRetired, problem, problemSince }) => {
      // A channel that was just announced has this problem until its first check.
      const isUnchecked = problem === 'account' && problemSince && now.getTime() - problemSince.getTime() < UNCHECKED_MS
      if (!isRunning || isRetired || problem === null || isUnchecked) return []
      const { meaning, remedy } = PROBLEM_EXPLANATIONS[problem]
      return {
        key: `channel ${address}`,
        level: ready.relay.ok ? 'late' : 'bad',
        since: problemSince ?? undefined,
        name: `Channel ${shorten(address)}`,
        affected: AFFECTED[problem] ?? 'jobs and runs that the channel would pay',
        why: meaning,
        remedy: `${remedy(address)}.`,
      } as const
    })
  },
}
