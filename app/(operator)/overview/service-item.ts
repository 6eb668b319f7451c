import type { Attention } from '#lib/dashboard/attention.ts'
import type { ChannelLine } from '#lib/dashboard/channels.ts'
import { CONDITIONS } from '#lib/dashboard/conditions.ts'
import type { Spending } from '#lib/dashboard/spending.ts'
import type { FoundProblem, Readiness } from '#lib/server/readiness.ts'
import type { Settings } from '#lib/server/settings.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'
import type { Stop } from '#lib/transfers/stop.ts'

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

type NoticeName = {
  [Name in keyof typeof CONDITIONS]: (typeof CONDITIONS)[Name] extends { notice: { what: string } } ? Name : never
}[keyof typeof CONDITIONS]

/** An item of the overview about the service itself. */
export const item = (name: NoticeName, details: Partial<Attention>): Attention => ({
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
