import type { FailureLine, WebhookLine } from '#lib/dashboard/webhooks.ts'
import { ATTEMPTS } from '#lib/events/delivery.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { timeColumn } from '../columns.tsx'
import { between, type View } from '../figures.tsx'
import { Section } from '../section.tsx'
import { Sign } from '../status.tsx'
import { type Column, Table } from '../table.tsx'

const COLUMNS: Column<WebhookLine>[] = [
  { head: 'Host', cell: ({ host }) => <span className="font-medium [overflow-wrap:anywhere]">{host}</span> },
  { head: 'Status', cell: (webhook) => <WebhookStatus {...webhook} /> },
  { head: 'Events', from: 'lg', cell: ({ types }) => types?.join(', ') ?? 'All' },
  { head: 'Waiting', from: 'sm', isNumber: true, cell: ({ waiting }) => groupDigits(waiting) },
  timeColumn('Last delivery', ({ deliveredAt }) => deliveredAt, { from: 'sm', none: 'Never' }),
  timeColumn('Added', ({ createdAt }) => createdAt, { from: 'md' }),
]

/** The endpoints of an organisation that get its events. */
export const Webhooks = ({ webhooks, ...view }: View & { webhooks: readonly WebhookLine[] }) =>
  webhooks.length > 0 && (
    <Section id="webhooks" title="Webhooks" note={webhooks.length}>
      <Table caption="Webhooks" view={view} columns={COLUMNS} rows={webhooks} keyOf={({ id }) => id} />
    </Section>
  )

function WebhookStatus({ disabledAt, failing }: WebhookLine) {
  if (disabledAt) return <Sign tone="bad">Disabled</Sign>
  return failing ? <Sign tone="late">Retrying</Sign> : <Sign tone="good">Enabled</Sign>
}

const FAILURES: Column<FailureLine>[] = [
  { head: 'Event', cell: ({ type }) => <span className="font-medium">{type}</span> },
  { head: 'Host', from: 'sm', cell: ({ host }) => <span className="[overflow-wrap:anywhere]">{host}</span> },
  { head: 'Status', cell: (failure) => <FailureStatus {...failure} /> },
  { head: 'Last error', cell: ({ why }) => why },
  { head: 'Attempts', from: 'md', isNumber: true, cell: ({ attempts }) => `${attempts} of ${ATTEMPTS}` },
  timeColumn('Last attempt', ({ attemptedAt }) => attemptedAt, { from: 'sm' }),
  {
    head: 'Next attempt',
    from: 'lg',
    cell: ({ due }, { now }) => due && (due > now ? `in ${between(now, due)}` : 'now'),
  },
]

/** The newest deliveries whose last attempt failed, until the employer's system takes them. */
export const Failures = ({ failures, ...view }: View & { failures: readonly FailureLine[] }) =>
  failures.length > 0 && (
    <Section id="delivery-problems" title="Delivery problems" note={failures.length}>
      <Table caption="Delivery problems" view={view} columns={FAILURES} rows={failures} keyOf={({ id }) => id} />
    </Section>
  )

function FailureStatus({ status, attempts }: FailureLine) {
  if (status === 'failed') return <Sign tone="bad">Failed</Sign>
  if (status === 'held') return <Sign tone="late">Held</Sign>
  return attempts === 0 ? <Sign tone="late">Queued</Sign> : <Sign tone="late">Retrying</Sign>
}
