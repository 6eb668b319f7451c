import type { Attention } from '#lib/dashboard/attention.ts'
import type { ChannelLine } from '#lib/dashboard/channels.ts'
import type { Spending } from '#lib/dashboard/spending.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'
import type { Stop } from '#lib/transfers/stop.ts'
import type { FoundProblem, Readiness } from './readiness.ts'
import type { Settings } from './settings.ts'

export interface ServiceState {
  ready: Readiness
  /** the problems behind `ready`, with their times */
  problems: readonly FoundProblem[]
  settings: Settings
  spending: Spending | undefined
  limits: QuotaLimits | undefined
  channels: readonly ChannelLine[]
  /** set while payments are stopped */
  stop: Stop | undefined
  /** the service starts its own relay, and has only just started itself */
  startsRelay: boolean
  /** when this process started: its settings are as old */
  startedAt: Date
  now: Date
}

type Details = Partial<Attention> & Pick<Attention, 'since' | 'why' | 'remedy'>

/** A condition of the service itself, which an operator must resolve. */
export interface ServiceCondition {
  level: Attention['level']
  what: string
  /** whom it concerns, in words */
  affected?: string
  page?: string
  /** what the overview says about it; undefined or empty if the service does not have it */
  describe: (state: ServiceState) => Details | readonly Details[] | undefined
}

/** Lists the conditions that the service has. */
export const describeService = (conditions: Record<string, ServiceCondition>, state: ServiceState): Attention[] =>
  Object.entries(conditions).flatMap(([key, { describe, ...condition }]) => {
    const items = [describe(state) ?? []].flat()
    const common = { key, affected: 'every organisation', actor: 'operator', page: '', ...condition } as const
    return items.map((details): Attention => ({ ...common, ...details }))
  })
